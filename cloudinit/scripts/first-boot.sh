#!/bin/sh
# Runs one step of the first boot: first-boot.sh NAME VERB [ARGUMENT]...
# Once a step has failed the later ones are left out. The reason is in /run/slipway/failed and is reported.
dir=/run/slipway

# download URL FILE: with whichever program the system has.
download() {
	if command -v curl >/dev/null; then
		curl -fsSL --retry 5 --retry-connrefused --connect-timeout 10 -o "$2" "$1"
	elif command -v wget >/dev/null; then
		wget -q -T 30 -t 5 -O "$2" "$1"
	else
		python3 -c 'import shutil, sys, urllib.request
with urllib.request.urlopen(sys.argv[1], timeout=30) as r, open(sys.argv[2], "wb") as f: shutil.copyfileobj(r, f)' "$1" "$2"
	fi
}

# tell URL [FILE]: tells Slipway something, with a file if there is one. It tries once, and not for long: another instance may answer.
tell() {
	if command -v curl >/dev/null; then
		curl -fsS --connect-timeout 5 --max-time 15 ${2:+--data-binary "@$2"} -o /dev/null "$1"
	elif command -v wget >/dev/null; then
		wget -q -T 15 -t 1 -O /dev/null ${2:+--post-file="$2"} "$1"
	else
		python3 -c 'import sys, urllib.request
data = open(sys.argv[2], "rb").read() if len(sys.argv) > 2 else None
urllib.request.urlopen(sys.argv[1], data=data, timeout=15).read()' "$@"
	fi
}

# report STEP [DETAIL]: tells Slipway, with the end of the log of what joins the machine to something, if that has failed.
# report-url has a URL of each instance of Slipway. That of this boot is the first, and may be gone for good.
# A report that does not get through fails nothing.
report() {
	[ -s "$dir/report-url" ] || return 0
	query="?step=$1"
	if [ -n "${2:-}" ]; then
		query="$query&detail=$(printf %s "$2" | tr -c 'A-Za-z0-9._-' '+')"
	fi
	tail=
	if [ -e "$dir/bootstrap.log" ]; then
		tail=$dir/bootstrap.tail
		tail -c 8000 "$dir/bootstrap.log" >"$tail"
		query="$query&part=bootstrap"
	fi
	urls=$(cat "$dir/report-url")
	# A server that restarts, or whose work another one takes over, answers again within a minute.
	tries=20
	while [ "$tries" -gt 0 ]; do
		for url in $urls; do
			tell "$url$query" ${tail:+"$tail"} && return 0
		done
		tries=$((tries - 1))
		sleep 5
	done
	echo "slipway: the report of step $1 did not get through" >&2
}

# fetch URL SHA256 PATH MODE OWNER HOW: a file from elsewhere; HOW is replace or append.
fetch() {
	tmp=$(mktemp) || return 1
	rc=0
	fetch_into "$tmp" "$@" || rc=1
	rm -f "$tmp"
	return "$rc"
}

fetch_into() {
	download "$2" "$1" || return 1
	if [ -n "$3" ] && ! echo "$3  $1" | sha256sum -c --status; then
		echo "slipway: $4 is not what it should be: its SHA-256 differs from $3" >&2
		return 1
	fi
	mkdir -p "$(dirname "$4")" || return 1
	if [ "$7" = append ] && [ -e "$4" ]; then
		cat "$1" >>"$4" || return 1
	else
		cp "$1" "$4" || return 1
	fi
	chmod "$5" "$4" && chown "$6" "$4"
}

# activate READYPATH COMMAND [ARGUMENT]...: what joins the machine to something, unless it has been done.
activate() {
	ready=$1
	shift
	if [ -n "$ready" ] && [ -e "$ready" ]; then
		return 0
	fi
	rm -f "$dir/bootstrap.rc"
	{
		"$@" 2>&1
		echo $? >"$dir/bootstrap.rc"
	} | tee "$dir/bootstrap.log"
	rc=$(cat "$dir/bootstrap.rc" || echo 1)
	if [ "$rc" -eq 0 ]; then
		rm -f "$dir/bootstrap.log"
	fi
	return "$rc"
}

# sentinel PATH: says to others that the activation has succeeded.
sentinel() {
	mkdir -p "$(dirname "$1")" && echo success >"$1"
}

# enable_unit UNIT: from now on. It does not wait, because the unit may wait for the end of this script.
enable_unit() {
	systemctl enable "$1" && systemctl start --no-block "$1"
}

# kernel_args ARGUMENT... -- ARGUMENT...: those to add and those to remove, from the next boot on.
kernel_args() {
	add='' remove=''
	while [ "$1" != -- ]; do
		add="$add $1"
		shift
	done
	shift
	for arg; do
		remove="$remove $arg"
	done
	if command -v grubby >/dev/null; then
		grubby --update-kernel=ALL --args="$add" --remove-args="$remove"
	elif command -v update-grub >/dev/null; then
		update-grub
	elif command -v grub2-mkconfig >/dev/null; then
		grub2-mkconfig -o /boot/grub2/grub.cfg
	else
		echo 'slipway: there is no grubby, update-grub or grub2-mkconfig here' >&2
		return 1
	fi
}

# hold PACKAGE...: keeps them at their version.
hold() {
	if command -v apt-mark >/dev/null; then
		apt-mark hold "$@"
	elif command -v dnf >/dev/null; then
		dnf -y versionlock add "$@"
	elif command -v zypper >/dev/null; then
		zypper --non-interactive addlock "$@"
	else
		echo 'slipway: there is no apt-mark, dnf or zypper here' >&2
		return 1
	fi
}

# scrub: removes cloud-init's copies of the configuration, because it holds secrets.
scrub() {
	for d in /var/lib/cloud/instances/*; do
		rm -f "$d"/user-data.txt* "$d"/cloud-config.txt "$d"/scripts/runcmd "$d"/obj.pkl
	done
	for d in /var/lib/cloud/seed/nocloud /var/lib/cloud/seed/nocloud-net; do
		if [ -e "$d/user-data" ]; then
			printf '#cloud-config\n{}\n' >"$d/user-data"
		fi
	done
}

# finish: the last step, which is taken in any case.
finish() {
	if [ -e "$dir/failed" ]; then
		rm -f "$dir/report-url"
		return 1
	fi
	report up
	rm -f "$dir/report-url"
	echo success >"$dir/done"
}

name=$1 verb=$2
shift 2
case $verb in
scrub)
	scrub
	exit 0
	;;
finish)
	finish
	exit
	;;
esac
if [ -e "$dir/failed" ]; then
	exit 0
fi
rc=0
case $verb in
run) "$@" || rc=$? ;;
fetch) fetch "$@" || rc=$? ;;
activate) activate "$@" || rc=$? ;;
sentinel) sentinel "$@" || rc=$? ;;
enable) enable_unit "$@" || rc=$? ;;
kernel-args) kernel_args "$@" || rc=$? ;;
hold) hold "$@" || rc=$? ;;
*) rc=2 ;;
esac
if [ "$rc" -ne 0 ]; then
	echo "slipway: $name ended with status $rc; the steps after it are left out" | tee "$dir/failed" >&2
	report failed "$name: status $rc"
fi
exit "$rc"
