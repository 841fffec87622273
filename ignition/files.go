package ignition

import (
	"cmp"
	"encoding/base64"
	"path"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// compressAbove is the length from which text without late values is left to Butane to compress.
const compressAbove = 4096

// lateOrigin is in front of a marker at the start of a URL while Butane and Ignition look at the document, since
// they insist on a scheme; finishDocument takes it away.
const lateOrigin = "http://late.invalid/"

func (r *rendering) files() {
	for _, f := range r.c.Files {
		r.file(f, pointer.Of("files", f.Path), 0)
	}
	for _, d := range r.c.Dirs {
		r.dir(d)
	}
}

// file adds a file that from asks for; volatile ones go to a stage, from where they are put back at every boot.
func (r *rendering) file(f machineconfig.File, from string, stage int) {
	if !r.take(f.Path, from) {
		return
	}
	mode := f.Mode.Or(0o644)
	special := mode&^0o777 != 0
	if f.IsVolatile() {
		r.stages[stage].add(r, f, from)
		f.Path, f.Owner, f.Group, mode, special = r.stages[stage].path(f.Path), "", "", 0o600, false
	}
	n := node{Path: f.Path, Mode: ref(uint32(mode & 0o777)), User: ownerOf(f.Owner), Group: ownerOf(f.Group)}
	res := r.resource(f.Content, from)
	if f.Append {
		n.Append = []resource{res}
	} else {
		n.Overwrite, n.Contents = ref(true), &res
	}
	if r.os.isOneOf(variantOpenShift) && (f.Append || f.Remote != nil) {
		r.notExpressible(from, "RHCOS takes whole files from the document only: give the content as text")
		return
	}
	if special { // specs before 3.6 ignore these bits
		r.stages[0].extra = append(r.stages[0].extra, tmpfile("z", f.Path, mode, f.Owner, f.Group, ""))
	}
	r.from["storage.files."+strconv.Itoa(len(r.b.Storage.Files))] = from
	r.b.Storage.Files = append(r.b.Storage.Files, n)
}

// text adds a file of ours.
func (r *rendering) text(p string, mode machineconfig.Mode, text, from string) {
	r.file(machineconfig.File{Path: p, Mode: mode, Content: machineconfig.Content{Text: text}}, from, 0)
}

// take books a path on the machine, once.
func (r *rendering) take(p, from string) bool {
	clean := path.Clean(p)
	if other, ok := r.taken[clean]; ok {
		if strings.HasPrefix(from, "/files/") || !strings.HasPrefix(other, "/files/") {
			other, from = from, other
		}
		f := r.report.Errorf(other, "duplicate", "%s is also written for %s", clean, from)
		f.Hint = "say it in one place only"
		return false
	}
	r.taken[clean] = from
	return true
}

func ownerOf(name string) *owner {
	if name == "" || name == "root" {
		return nil
	}
	if id, err := strconv.Atoi(name); err == nil {
		return &owner{ID: &id}
	}
	return &owner{Name: name}
}

// resource says content so that late values can be put into it: text with markers is never compressed.
func (r *rendering) resource(c machineconfig.Content, from string) resource {
	switch {
	case c.Remote != nil:
		return r.remote(*c.Remote, from)
	case c.Secret != "":
		return resource{Source: "data:," + late.MarkerIn(c.Secret, late.Percent)}
	case c.Base64 != "":
		raw := strings.Join(strings.Fields(c.Base64), "")
		if _, err := base64.StdEncoding.DecodeString(raw); err != nil {
			r.report.Errorf(from, "invalid", "its base64 content cannot be read: %v", err).Hint = "use standard base64 with padding"
		}
		return resource{Source: "data:;base64," + raw}
	case len(c.Text) > compressAbove && !late.HasMarker(c.Text) && !r.os.isOneOf(variantOpenShift):
		return resource{Inline: &c.Text}
	}
	text := c.Text
	if strings.HasPrefix(text, "#!") {
		text = liftLate(text)
	}
	return resource{Source: late.DataURL(text)}
}

func (r *rendering) remote(m machineconfig.Remote, from string) resource {
	res := resource{Source: lateURL(m.URL)}
	if m.SHA256 != "" {
		res.Verification = &verification{Hash: "sha256-" + strings.TrimPrefix(strings.ToLower(m.SHA256), "sha256:")}
	} else if strings.HasPrefix(m.URL, "http://") {
		r.report.Errorf(from, "unverified", "is fetched over http without a checksum").Hint = "give its sha256"
	}
	return res
}

// lateURL gives a URL that starts with a marker an origin that finishDocument takes away again.
func lateURL(u string) string {
	if late.HasMarker(u) && !strings.Contains(u, "://") {
		return lateOrigin + u
	}
	return u
}

func (r *rendering) dir(d machineconfig.Directory) {
	from := pointer.Of("directories", d.Path)
	if !r.take(d.Path, from) {
		return
	}
	mode := d.Mode.Or(0o755)
	volatile := machineconfig.File{Path: d.Path}.IsVolatile()
	if mode&^0o777 != 0 || volatile || r.os.isOneOf(variantOpenShift) {
		r.stages[0].extra = append(r.stages[0].extra, tmpfile("d", runPath(d.Path), mode, d.Owner, d.Group, ""))
	}
	if volatile || r.os.isOneOf(variantOpenShift) {
		return
	}
	r.from["storage.directories."+strconv.Itoa(len(r.b.Storage.Directories))] = from
	r.b.Storage.Directories = append(r.b.Storage.Directories, node{
		Path: d.Path, Mode: ref(uint32(mode & 0o777)), User: ownerOf(d.Owner), Group: ownerOf(d.Group),
	})
}

func (r *rendering) links() {
	for _, l := range r.c.Links {
		r.link(l, pointer.Of("links", l.Path))
	}
}

func (r *rendering) link(l machineconfig.Link, from string) {
	if !r.take(l.Path, from) {
		return
	}
	volatile := machineconfig.File{Path: l.Path}.IsVolatile()
	if volatile || r.os.isOneOf(variantOpenShift) {
		if l.Hard {
			r.notExpressible(from, "a hard link there cannot be made: use a symbolic one")
			return
		}
		r.stages[0].extra = append(r.stages[0].extra, "L+ "+tmpWord(runPath(l.Path))+" - - - - "+tmpEscape(l.Target))
		return
	}
	n := node{Path: l.Path, Target: l.Target, Overwrite: ref(true)}
	if l.Hard {
		n.Hard = ref(true)
	}
	r.from["storage.links."+strconv.Itoa(len(r.b.Storage.Links))] = from
	r.b.Storage.Links = append(r.b.Storage.Links, n)
}

// stage is a folder that holds copies of files which systemd-tmpfiles puts in place at every boot.
type stage struct {
	dir, conf string
	dirs      []string // lines that make folders
	copies    []string // lines that copy files
	extra     []string // lines about other paths
}

// path is where a volatile file is staged.
func (s *stage) path(p string) string { return s.dir + runPath(p) }

func (s *stage) add(r *rendering, f machineconfig.File, from string) {
	p := runPath(f.Path)
	for _, kernel := range []string{"/proc/", "/sys/"} {
		if strings.HasPrefix(p, kernel) {
			r.notExpressible(from, "it belongs to the kernel: use kernel.sysctl, or a command on every boot")
			return
		}
	}
	if d := path.Dir(p); strings.Count(d, "/") > 1 { // /run and /tmp themselves exist
		s.dirs = append(s.dirs, tmpfile("d", d, 0o755, "", "", ""))
	}
	s.copies = append(s.copies, tmpfile("C", p, f.Mode.Or(0o644), f.Owner, f.Group, s.path(p)))
}

// runPath spells /var/run as /run, which is what it is.
func runPath(p string) string {
	if rest, ok := strings.CutPrefix(p, "/var/run/"); ok {
		return "/run/" + rest
	}
	return path.Clean(p)
}

// tmpfile is a line of tmpfiles.d(5). Markers cannot be in one: paths hold none.
func tmpfile(kind, p string, mode machineconfig.Mode, user, group, source string) string {
	if source == "" {
		source = "-"
	} else {
		source = tmpEscape(source)
	}
	return strings.Join([]string{kind, tmpWord(p), mode.String(), cmp.Or(user, "root"), cmp.Or(group, "root"), "-", source}, " ")
}

// tmpWord quotes a path; tmpEscape only keeps percent signs from being specifiers, as the last column wants it.
func tmpWord(p string) string {
	p = tmpEscape(p)
	if !strings.ContainsAny(p, " \t\"'\\") {
		return p
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p) + `"`
}

func tmpEscape(p string) string { return strings.ReplaceAll(p, "%", "%%") }

// volatile writes the tmpfiles.d files of the stages; it comes last.
func (r *rendering) volatile() {
	for i := range r.stages {
		s := &r.stages[i]
		if len(s.copies)+len(s.extra) == 0 {
			continue
		}
		text := "# Put in place at every boot by Slipway.\n"
		seen := map[string]bool{}
		for _, l := range append(append(s.dirs, s.copies...), s.extra...) {
			if !seen[l] {
				seen[l] = true
				text += l + "\n"
			}
		}
		r.text("/etc/tmpfiles.d/"+s.conf, 0, text, "/files")
	}
}
