# Makes the SSH server read a file of settings: FILE [PORT]...
file=$1
shift
config=/etc/ssh/sshd_config
if [ -e "$config" ] && ! grep -qiE '^[[:space:]]*Include[[:space:]]+/etc/ssh/sshd_config\.d/' "$config"; then
	# An SSH server that includes nothing takes the first value that it reads.
	cat "$file" "$config" >"$config.slipway" && chmod 0600 "$config.slipway" && mv "$config.slipway" "$config" || exit 1
fi
if command -v semanage >/dev/null; then
	for port; do
		[ "$port" = 22 ] || semanage port -a -t ssh_port_t -p tcp "$port" || semanage port -m -t ssh_port_t -p tcp "$port" || exit 1
	done
fi
systemctl daemon-reload
for unit in ssh.socket sshd.socket ssh.service sshd.service; do
	systemctl try-restart "$unit" || true
done
