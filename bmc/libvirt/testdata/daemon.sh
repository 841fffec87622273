# Runs a libvirtd in namespaces of its own, below the directory $1, and starts it again when it is killed: so the
# machine's own libvirt, its domains and its networks stay as they are.
set -e
mount --make-rprivate /
mount -t proc proc /proc
ip link set lo up
for d in /run/libvirt /var/lib/libvirt /var/cache/libvirt /var/log/libvirt /etc/libvirt/qemu; do mount -t tmpfs tmpfs $d; done
cat >"$1/qemu.conf" <<END
security_driver = "none"
namespaces = []
cgroup_controllers = []
stdio_handler = "file"
user = "root"
group = "root"
END
mount --bind "$1/qemu.conf" /etc/libvirt/qemu.conf
cat >"$1/libvirtd.conf" <<END
unix_sock_dir = "$1"
auth_unix_rw = "none"
auth_unix_ro = "none"
END
while :; do
	libvirtd -f "$1/libvirtd.conf" --pid-file "$1/pid" || true
	rm -f "$1/pid"
	sleep 0.2
done
