-- Stores a blob, or extends its time. The bytes of a blob never change. ARGV: now, value, keep
local keep = now + tonumber(ARGV[3])
local before = tonumber(redis.call('HGET', key, 'keep') or 0)
if before > keep then keep = before end
if before == 0 then redis.call('HSET', key, 'value', ARGV[2]) end
redis.call('HSET', key, 'keep', text(keep))
expire_at(keep)
return { 'written' }
