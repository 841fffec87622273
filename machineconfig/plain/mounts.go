package plain

import (
	"slices"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// mounts adds lines to fstab. A password is in a file that root alone reads.
func (w *writer) mounts() {
	var lines strings.Builder
	var now []string // what is mounted on the first boot
	for _, m := range w.c.Storage.Mounts {
		options := append([]string{}, m.Options...)
		if m.Username != "" {
			path := "/etc/slipway/mounts/" + slug(m.MountPoint) + ".credentials"
			text := "username=" + m.Username + "\n"
			if m.Domain != "" {
				text += "domain=" + m.Domain + "\n"
			}
			if m.Password != "" {
				text += "password=" + late.Marker(m.Password) + "\n"
			}
			w.file(path, 0o600, text)
			options = append([]string{"credentials=" + path}, options...)
		}
		if len(options) == 0 {
			options = []string{"defaults"}
		}
		all := strings.Join(options, ",")
		lines.WriteString(m.Source + " " + m.MountPoint + " " + string(m.Type) + " " + all + " 0 0\n")
		w.c.Dirs = append(w.c.Dirs, machineconfig.Directory{Path: m.MountPoint})
		if !slices.Contains(options, "noauto") && !slices.Contains(options, "x-systemd.automount") {
			now = append(now, m.MountPoint)
		}
		switch m.Type {
		case machineconfig.NFS, machineconfig.NFS4:
			w.install(map[Family]string{Apt: "nfs-common", Dnf: "nfs-utils", Zypper: "nfs-client"})
		case machineconfig.CIFS:
			w.install(map[Family]string{Apt: "cifs-utils", Dnf: "cifs-utils", Zypper: "cifs-utils"})
		}
	}
	if lines.Len() == 0 {
		return
	}
	w.appendTo("/etc/fstab", lines.String())
	if len(now) > 0 {
		w.run("mount", now...)
	}
}

// slug makes a file name of a path.
func slug(path string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '-'
	}, path), "-")
}
