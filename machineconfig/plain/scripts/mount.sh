# Mounts what fstab has: PATH...
systemctl daemon-reload
for path; do
	mkdir -p "$path"
	mountpoint -q "$path" || mount "$path" || exit 1
done
