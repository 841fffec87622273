# Removes packages: PACKAGE...
if command -v apt-get >/dev/null; then
	DEBIAN_FRONTEND=noninteractive apt-get -y purge "$@"
elif command -v dnf >/dev/null; then
	dnf -y remove "$@"
else
	zypper --non-interactive remove "$@"
fi
