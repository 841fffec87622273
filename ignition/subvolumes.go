package ignition

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// subvolumes writes a unit that makes the subvolumes of a file system, and a unit for each mount.
func (r *rendering) subvolumes(f machineconfig.Filesystem, device string) {
	from := pointer.Of("storage", "filesystems", f.Device, "subvolumes")
	step := "subvolumes-" + strings.NewReplacer("/", "-").Replace(strings.Trim(f.Device, "/"))
	var mounts, names []string
	for _, s := range f.Subvolumes {
		names = append(names, s.Name)
		if s.MountPoint == "" {
			continue
		}
		if s.MountPoint == "/" {
			r.notExpressible(from+pointer.Of(s.Name, "mountPoint"), "the OS mounts its root by itself")
			continue
		}
		name := unitPath(s.MountPoint) + ".mount"
		mounts = append(mounts, name)
		options := strings.Join(append([]string{"subvol=" + s.Name}, s.MountOptions...), ",")
		text := "[Unit]\nRequires=" + r.stepUnit(step) + "\nAfter=" + r.stepUnit(step) + "\nBefore=local-fs.target\n\n[Mount]\nWhat=" + unitEscape(device) +
			"\nWhere=" + unitEscape(r.line(from, s.MountPoint)) + "\nType=btrfs\nOptions=" + unitEscape(options) + "\n\n[Install]\nRequiredBy=local-fs.target\n"
		r.service(name, text, from)
	}
	r.shell(step+".sh", script("Makes the subvolumes of btrfs that are not there yet.")+
		"dir=/run/"+r.own+"-subvolumes\nmkdir -p \"$dir\"\nmount -t btrfs -o subvolid=5 "+late.ShellWord(device)+" \"$dir\"\ntrap 'umount \"$dir\"' EXIT\n"+
		"for name in "+shellLine(names)+"; do\n\t[ -e \"$dir/$name\" ] || { mkdir -p \"$(dirname \"$dir/$name\")\" && btrfs subvolume create \"$dir/$name\"; }\ndone\n", from)
	dev := unitPath(device) + ".device"
	r.service(r.stepUnit(step), fmt.Sprintf(`[Unit]
Description=Slipway: subvolumes of btrfs
DefaultDependencies=no
Requires=%[1]s
After=%[1]s
Before=local-fs.target %[2]s

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=%[3]s

[Install]
WantedBy=local-fs.target
`, dev, strings.Join(mounts, " "), r.bash(step+".sh")), from)
}

// unitPath is a path as the name of a unit, as systemd-escape --path makes it.
func unitPath(p string) string {
	p = strings.Trim(p, "/")
	if p == "" {
		return "-"
	}
	var b strings.Builder
	for i := range len(p) {
		switch c := p[i]; {
		case c == '/':
			b.WriteByte('-')
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == ':', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02x`, c)
		}
	}
	return b.String()
}
