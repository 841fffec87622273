# Installs snaps: NAME CHANNEL classic|strict...
snap wait system seed.loaded || exit 1
while [ $# -gt 0 ]; do
	set -- "$1" "${2:-latest/stable}" "$@"
	if [ "$5" = classic ]; then
		snap install "$1" --channel="$2" --classic || exit 1
	else
		snap install "$1" --channel="$2" || exit 1
	fi
	shift 5
done
