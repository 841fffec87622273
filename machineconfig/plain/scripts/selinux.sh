# Sets the mode of SELinux, now as far as that is possible, and for later boots: enforcing|permissive|disabled
config=/etc/selinux/config
if [ ! -e "$config" ]; then
	echo 'slipway: this system has no SELinux' >&2
	exit 1
fi
was=$(getenforce 2>/dev/null || echo Disabled)
sed -i "s/^SELINUX=.*/SELINUX=$1/" "$config" || exit 1
case $1:$was in
*:Disabled) [ "$1" = disabled ] || touch /.autorelabel ;;
enforcing:*) setenforce 1 ;;
*) setenforce 0 ;;
esac
