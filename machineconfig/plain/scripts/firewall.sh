# Opens what is said and nothing else: on|off [service:NAME|port:N/PROTOCOL]...
how=$1
shift
if command -v firewall-cmd >/dev/null; then
	if [ "$how" = off ]; then
		systemctl disable --now firewalld.service
		exit
	fi
	systemctl enable --now firewalld.service || exit 1
	# DHCPv6 needs its answers; what else the zone opens by itself is closed.
	for s in $(firewall-cmd --permanent --list-services); do
		[ "$s" = dhcpv6-client ] || firewall-cmd --permanent --remove-service="$s" || exit 1
	done
	for item; do
		case $item in
		service:*) firewall-cmd --permanent --add-service="${item#service:}" || exit 1 ;;
		port:*) firewall-cmd --permanent --add-port="${item#port:}" || exit 1 ;;
		esac
	done
	firewall-cmd --reload
	exit
fi
if ! command -v ufw >/dev/null; then
	[ "$how" = off ] && exit 0
	echo 'slipway: there is neither firewalld nor ufw here' >&2
	exit 1
fi
if [ "$how" = off ]; then
	ufw --force disable
	exit
fi
ufw default deny incoming || exit 1
for item; do
	case $item in
	service:*) ufw allow "${item#service:}" || exit 1 ;;
	port:*) ufw allow "$(echo "${item#port:}" | tr - :)" || exit 1 ;;
	esac
done
ufw --force enable
