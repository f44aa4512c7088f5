// A person with a browser at the pages of an authorization server, over plain HTTP: signs in as `ada`, and agrees.

/** The fields of the first form of a page that do not give up, and its first button. */
function filled(page, base) {
  const form = /<form[^>]*action="([^"]*)"[^>]*>([\s\S]*?)<\/form>/.exec(page);
  if (!form) return undefined;
  const fields = new URLSearchParams();
  const button = /<button[^>]*>/.exec(form[2])?.[0];
  for (const field of [...(form[2].match(/<input[^>]*>/g) ?? []), button ?? '']) {
    const name = / name="([^"]*)"/.exec(field)?.[1];
    const value = / value="([^"]*)"/.exec(field)?.[1] ?? '';
    if (name) fields.set(name, { login: 'ada', password: 'x' }[name] ?? value);
  }
  return { action: new URL(form[1].replaceAll('&amp;', '&'), base), fields };
}

/** Opens a page. Returns the address to which its pages return, below the page's `redirect_uri`; nothing if they end elsewhere. */
export async function visit(start) {
  const cookies = new Map();
  const asked = new URL(start).searchParams;
  const back = asked.get('redirect_uri');
  let url = new URL(start);
  let body;
  for (let step = 0; step < 30; step += 1) {
    const sent = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, {
      method: body ? 'POST' : 'GET',
      body,
      headers: { cookie: sent },
      redirect: 'manual',
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [pair] = cookie.split(';');
      const at = pair.indexOf('=');
      cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
    const location = response.headers.get('location');
    const page = await response.text();
    body = undefined;
    if (location) {
      url = new URL(location, url);
      if (back && url.href.startsWith(back)) return url.href;
      continue;
    }
    if (!response.ok) throw new Error(`${response.status} at ${url.pathname}: ${page}`);
    const form = filled(page, url);
    if (!form) return '';
    ({ action: url, fields: body } = form);
    // The code for a device is in the address of the page.
    if (body.has('user_code') && !body.get('user_code')) body.set('user_code', asked.get('user_code'));
  }
  throw new Error('the pages do not end');
}
