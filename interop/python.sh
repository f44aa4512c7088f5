# Sourced by the runners of the peers that run on Python, after parts.sh. It sets nothing but a function.

# Installs what the requirements of a folder say, once, into the environment that is named (default: .venv in the
# folder); sets `venv`.
use_venv() {
    local folder=$1 wanted
    venv=${2:-$folder/.venv}
    wanted=$(sha256sum "$folder/requirements.txt" | cut -d ' ' -f 1)
    # Two peers may need one folder at once.
    (
        flock 9
        if [ "$(cut -d ' ' -f 1 "$venv/.requirements" 2>/dev/null)" != "$wanted" ]; then
            python3 -m venv "$venv"
            "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$folder/requirements.txt"
            printf '%s\n' "$wanted" >"$venv/.requirements"
        fi
    ) 9<"$folder/requirements.txt"
    venv=$(cd "$venv" && pwd)
}
