# Installs groups of packages: GROUP...
for group; do
	if command -v apt-get >/dev/null; then
		DEBIAN_FRONTEND=noninteractive apt-get -y install "$group^" || exit 1
	elif command -v dnf >/dev/null; then
		dnf -y install "@$group" || exit 1
	else
		zypper --non-interactive install --type pattern "$group" || exit 1
	fi
done
