package installer

import (
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
)

// IsPath reports whether a selector is only a device path, which needs no search.
func IsPath(s machineconfig.DeviceSelector) bool {
	return s.Path != "" && s == machineconfig.DeviceSelector{Path: s.Path}
}

// Pick is a function of a POSIX shell: slipway_disk SERIAL WWN MODEL MINGIB MAXGIB ROTATIONAL PATH CHOOSE prints the device
// of a disk that is not removable and matches every argument that is not empty; it fails if there is none. It takes the
// first, or the largest, smallest or fastest: an NVMe disk, else one that does not rotate, the largest of these. It needs
// udevadm, and works with the shell of Debian's installer. Its lines may be joined by blanks.
const Pick = `slipway_disk() {
best=""; most=0;
for s in /sys/block/*; do
d="${s##*/}";
case "$d" in loop*|ram*|zram*|sr*|fd*|md*|dm-*|nbd*) continue;; esac;
test "$(cat "$s/removable")" = 0 || continue;
n="$(cat "$s/size")";
test "$n" -gt 0 || continue;
p="$(udevadm info -q property -p "$s"; echo "ID_SERIAL_SHORT=$(cat "$s/serial" "$s/device/serial" 2>/dev/null)"; echo "ID_WWN=$(cat "$s/wwid" "$s/device/wwid" 2>/dev/null)")";
if test -n "$1"; then echo "$p" | grep -qxF -e "ID_SERIAL_SHORT=$1" -e "ID_SERIAL=$1" -e "ID_SCSI_SERIAL=$1" || continue; fi;
if test -n "$2"; then echo "$p" | grep -qixF -e "ID_WWN=$2" -e "ID_WWN_WITH_EXTENSION=$2" -e "ID_WWN=0x$2" -e "ID_WWN=naa.${2#0x}" -e "ID_WWN=eui.${2#0x}" || continue; fi;
if test -n "$3"; then case "$(cat "$s/device/model" 2>/dev/null)" in *"$3"*) : ;; *) continue;; esac; fi;
if test -n "$4"; then test "$n" -ge "$(($4 * 2097152))" || continue; fi;
if test -n "$5"; then test "$n" -le "$(($5 * 2097152))" || continue; fi;
if test -n "$6"; then test "$(cat "$s/queue/rotational")" = "$6" || continue; fi;
if test -n "$7"; then test "$(readlink -f "$7")" = "/dev/$d" || continue; fi;
case "$8" in
"") best="$d"; break;;
largest) v="$n";;
smallest) v="$((4611686018427387904 - n))";;
*) v="$n";
if test "$(cat "$s/queue/rotational")" = 0; then v="$((v + 1152921504606846976))"; fi;
case "$d" in nvme*) v="$((v + 1152921504606846976))";; esac;;
esac;
if test "$v" -gt "$most"; then most="$v"; best="$d"; fi;
done;
test -n "$best" && echo "/dev/$best"; }`

// PickCall is the call of Pick for a selector.
func PickCall(s machineconfig.DeviceSelector) string {
	rotational := ""
	if s.Rotational != nil {
		rotational = map[bool]string{true: "1", false: "0"}[*s.Rotational]
	}
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	return "slipway_disk " + Words([]string{s.Serial, s.WWN, s.Model, number(s.MinGiB), number(s.MaxGiB), rotational, s.Path, string(s.Choose)})
}

// Describe says a selector for people.
func Describe(s machineconfig.DeviceSelector) string {
	var parts []string
	for _, p := range []struct{ name, value string }{{"path", s.Path}, {"serial", s.Serial}, {"wwn", s.WWN}, {"model", s.Model}} {
		if p.value != "" {
			parts = append(parts, p.name+" "+p.value)
		}
	}
	if s.MinGiB > 0 {
		parts = append(parts, "at least "+strconv.Itoa(s.MinGiB)+" GiB")
	}
	if s.MaxGiB > 0 {
		parts = append(parts, "at most "+strconv.Itoa(s.MaxGiB)+" GiB")
	}
	if s.Rotational != nil {
		parts = append(parts, map[bool]string{true: "rotational", false: "not rotational"}[*s.Rotational])
	}
	if s.Choose != "" {
		parts = append(parts, "the "+string(s.Choose))
	}
	if parts == nil {
		return "the first one"
	}
	return strings.Join(parts, ", ")
}
