# Installs packages at their versions, and keeps them there: NAME VERSION...
while [ $# -gt 0 ]; do
	if command -v apt-get >/dev/null; then
		DEBIAN_FRONTEND=noninteractive apt-get -y --allow-downgrades install "$1=$2" && apt-mark hold "$1" || exit 1
	elif command -v dnf >/dev/null; then
		dnf -y install "$1-$2" && dnf -y versionlock add "$1-$2" || exit 1
	else
		zypper --non-interactive install --oldpackage "$1=$2" && zypper --non-interactive addlock "$1" || exit 1
	fi
	shift 2
done
