package cloudinit

import (
	"cmp"
	"encoding/base64"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// stageDir keeps what systemd-tmpfiles puts back at every boot.
const stageDir = "/etc/slipway/stage"

const tmpfilesPath = "/etc/tmpfiles.d/slipway.conf"

// writeFiles says files, directories and links. Those under /run and /tmp are put back at every boot.
func (w *render) writeFiles() {
	var tmpfiles strings.Builder
	for _, d := range w.c.Dirs {
		mode, owner, group := d.Mode.Or(0o755).String(), cmp.Or(d.Owner, "root"), cmp.Or(d.Group, "root")
		w.step("directory "+d.Path, "run", "install", "-d", "-m", mode, "-o", owner, "-g", group, "--", d.Path)
		if isVolatile(d.Path) {
			tmpfiles.WriteString(tmpfilesLine("d", d.Path, mode, owner, group, ""))
		}
	}
	for _, f := range w.c.Files {
		w.writeFile(f)
		if f.IsVolatile() && f.Remote == nil && !f.Append {
			staged := f
			staged.Path = stageDir + path.Clean(f.Path)
			staged.Mode, staged.Owner, staged.Group = 0o600, "", ""
			w.writeFile(staged)
			owner, group := cmp.Or(f.Owner, "root"), cmp.Or(f.Group, "root")
			tmpfiles.WriteString(tmpfilesLine("C", f.Path, f.Mode.Or(0o644).String(), owner, group, staged.Path))
		}
	}
	for _, l := range w.c.Links {
		how := "-sfnT"
		if l.Hard {
			how = "-fnT"
		}
		w.step("folder of "+l.Path, "run", "mkdir", "-p", "--", path.Dir(l.Path))
		w.step("link "+l.Path, "run", "ln", how, "--", l.Target, l.Path)
		if isVolatile(l.Path) && !l.Hard {
			tmpfiles.WriteString(tmpfilesLine("L+", l.Path, "-", "-", "-", l.Target))
		}
	}
	if tmpfiles.Len() > 0 {
		w.file(tmpfilesPath, "0644", tmpfiles.String())
	}
}

func isVolatile(p string) bool { return machineconfig.File{Path: p}.IsVolatile() }

func tmpfilesLine(kind, target, mode, owner, group, arg string) string {
	esc := strings.NewReplacer("%", "%%", `\`, `\\`, `"`, `\"`)
	return strings.TrimRight(kind+` "`+esc.Replace(target)+`" `+mode+" "+owner+" "+group+" - "+strings.ReplaceAll(arg, "%", "%%"), " ") + "\n"
}

// writeFile says one file.
func (w *render) writeFile(f machineconfig.File) {
	mode, owner := f.Mode.Or(0o644).String(), cmp.Or(f.Owner, "root")+":"+cmp.Or(f.Group, "root")
	if f.Remote != nil {
		how := "replace"
		if f.Append {
			how = "append"
		}
		w.step("file "+f.Path, "fetch", f.Remote.URL, f.Remote.SHA256, f.Path, mode, owner, how)
		return
	}
	o := object{{"path", f.Path}, {"permissions", quoted(mode)}}
	if owner != "root:root" {
		o = append(o, entry{"owner", owner})
	}
	switch {
	case f.Secret != "":
		// The whole content is one marker: as Base64 it may be any bytes.
		o = append(o, entry{"encoding", "b64"}, entry{"content", quoted(late.MarkerIn(f.Secret, late.Base64))})
	case f.Base64 != "":
		o = append(o, entry{"encoding", "b64"}, entry{"content", quoted(strings.Join(strings.Fields(f.Base64), ""))})
	case !utf8.ValidString(f.Text) && !late.HasMarker(f.Text):
		o = append(o, entry{"encoding", "b64"}, entry{"content", quoted(base64.StdEncoding.EncodeToString([]byte(f.Text)))})
	default:
		o = append(o, entry{"content", f.Text})
	}
	if f.Append {
		o = append(o, entry{"append", true})
	}
	if owner != "root:root" || w.isLate(f.Path) {
		o = append(o, entry{"defer", true})
	}
	w.files = append(w.files, o)
}

// isLate reports whether a file has to wait for the last stage: below a mount point it would be hidden, and early in
// the boot /tmp is still cleaned.
func (w *render) isLate(p string) bool {
	if strings.HasPrefix(p, "/tmp/") {
		return true
	}
	below := func(mountPoint string) bool {
		return mountPoint != "" && strings.HasPrefix(p, strings.TrimSuffix(mountPoint, "/")+"/")
	}
	return slices.ContainsFunc(w.c.Storage.Filesystems, func(f machineconfig.Filesystem) bool {
		return below(f.MountPoint) || slices.ContainsFunc(f.Subvolumes, func(s machineconfig.Subvolume) bool { return below(s.MountPoint) })
	})
}
