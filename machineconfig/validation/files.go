package validation

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

// maxMode is all permission bits, with setuid, setgid and sticky.
const maxMode = 0o7777

// tree checks files, directories and links, and that they fit into one tree.
type tree struct{ *checker }

func (v tree) check() {
	kinds := map[string]string{}
	add := func(p, name, kind string) {
		if was := kinds[name]; was != "" {
			v.r.Errorf(p, "duplicate", "is one of %s too", was).Hint = "a path is one thing: remove one of them"
		}
		kinds[name] = kind
	}
	for i := range v.c.Dirs {
		d := &v.c.Dirs[i]
		at := pointer.Add("/directories", d.Path)
		add(at, d.Path, "directories")
		v.entry(at, d.Path, d.Mode, d.Owner, d.Group)
	}
	for i := range v.c.Files {
		f := &v.c.Files[i]
		at := pointer.Add("/files", f.Path)
		add(at, f.Path, "files")
		v.entry(at, f.Path, f.Mode, f.Owner, f.Group)
		v.content(at, f)
	}
	for i := range v.c.Links {
		l := &v.c.Links[i]
		at := pointer.Add("/links", l.Path)
		add(at, l.Path, "links")
		v.entry(at, l.Path, 0, "", "")
		v.link(at, l)
	}
	for i := range v.c.Units {
		if u := &v.c.Units[i]; u.Contents != "" {
			if was := kinds["/etc/systemd/system/"+u.Name]; was != "" {
				v.r.Errorf(pointer.Add("/units", u.Name), "duplicate", "is one of %s too, as /etc/systemd/system/%s", was, u.Name).
					Hint = "keep the unit"
			}
		}
	}
	v.nesting(kinds)
}

// nesting finds what lies below a file or a link.
func (v tree) nesting(kinds map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if !strings.HasPrefix(name, "/") || len(name) > 1024 {
			continue
		}
		at := pointer.Add("/"+kinds[name], name)
		for up := parent(name); up != ""; up = parent(up) {
			switch kinds[up] {
			case "files":
				v.r.Errorf(at, "conflict", "lies in %s, which is a file", up).Hint = "make that a directory, or choose another path"
			case "links":
				v.r.Warnf(at, "in-link", "lies below the link %s: not every format follows links", up).
					Hint = "write the path that the link stands for"
			}
		}
	}
}

// parent returns the folder of a clean path, "" for the root.
func parent(p string) string { return p[:max(strings.LastIndexByte(p, '/'), 0)] }

// entry checks what files, directories and links have in common.
func (v tree) entry(at, p string, mode machineconfig.Mode, owner, group string) {
	if v.absolute(pointer.Add(at, "path"), p) {
		switch {
		case p == "/":
			v.invalid(pointer.Add(at, "path"), "", "the root is there already")
		case p == "/proc" || p == "/sys" || strings.HasPrefix(p, "/proc/") || strings.HasPrefix(p, "/sys/"):
			v.invalid(pointer.Add(at, "path"), "use kernel.sysctl, or a command in the phase every-boot", "%s belongs to the kernel", p)
		}
	}
	if mode > maxMode {
		v.invalid(pointer.Add(at, "mode"), "write three or four octal digits, such as 0644", "%s is not a mode", mode)
	}
	for _, f := range []struct{ key, name string }{{"owner", owner}, {"group", group}} {
		if f.name != "" && !numberRE.MatchString(f.name) {
			v.match(pointer.Add(at, f.key), f.name, accountRE, "the name of a user or group", accountHint)
		}
	}
}

// content checks that a file has exactly one content.
func (v tree) content(at string, f *machineconfig.File) {
	var has []string
	for _, c := range []struct {
		key   string
		isSet bool
	}{{"text", f.Text != ""}, {"base64", f.Base64 != ""}, {"secret", f.Secret != ""}, {"remote", f.Remote != nil}} {
		if _, isSaid := v.c.Provenance[pointer.Add(at, c.key)]; c.isSet || isSaid {
			has = append(has, c.key)
		}
	}
	_, isFromLayer := v.c.Provenance[at]
	switch {
	case len(has) > 1:
		v.r.Errorf(at, "conflict", "has %s: a file has one content", strings.Join(has, " and ")).Hint = "keep one of them"
	case len(has) == 0 && f.Remote == nil && isFromLayer:
		v.r.Errorf(at, "missing", "has no content").Hint = `give text, base64, secret or remote; text: "" makes an empty file`
	}
	if strings.ContainsRune(f.Text, 0) {
		v.invalid(pointer.Add(at, "text"), "give binary content as base64", "holds a NUL character")
	}
	if f.Base64 != "" {
		if _, err := base64.StdEncoding.Strict().DecodeString(f.Base64); err != nil || strings.ContainsAny(f.Base64, "\r\n") {
			v.invalid(pointer.Add(at, "base64"), "write it on one line, as base64 -w0 prints it", "is not base64")
		}
	}
	if f.Secret != "" {
		v.secret(pointer.Add(at, "secret"), f.Secret)
	}
	if f.Remote != nil {
		v.remote(pointer.Add(at, "remote"), f.Remote)
	}
}

func (v tree) link(at string, l *machineconfig.Link) {
	p := pointer.Add(at, "target")
	switch {
	case l.Target == "":
		v.r.Errorf(p, "missing", "has no target")
	case l.Target == l.Path:
		v.r.Errorf(p, "cycle", "is the link itself")
	case l.Hard:
		v.absolute(p, l.Target)
	default:
		v.oneLine(p, l.Target, 1024)
	}
}
