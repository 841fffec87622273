package ignition

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/coreos/ign-converter/translate/v23tov30"
	v2 "github.com/coreos/ignition/config/v2_3"
	v2types "github.com/coreos/ignition/config/v2_3/types"
	v37 "github.com/coreos/ignition/v2/config/v3_7_experimental"
	"github.com/coreos/vcontext/report"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

var specRE = regexp.MustCompile(`^([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})(-experimental)?$`)

// spec is a version of the Ignition spec; the fourth number is 0 for an experimental one.
type spec [4]int

func parseSpec(s string) (spec, bool) {
	m := specRE.FindStringSubmatch(s)
	if m == nil {
		return spec{}, false
	}
	v := spec{3: 1}
	for i := range 3 {
		v[i], _ = strconv.Atoi(m[i+1]) // at most three digits
	}
	if m[4] != "" {
		v[3] = 0
	}
	return v, true
}

// Compare orders two versions of the Ignition spec, as package cmp does. A text that is not a version sorts first.
func Compare(a, b string) int {
	x, _ := parseSpec(a)
	y, _ := parseSpec(b)
	for i := range x {
		if c := cmp.Compare(x[i], y[i]); c != 0 {
			return c
		}
	}
	return 0
}

// CanRead reports whether an Ignition whose newest spec is client reads a document of spec doc. Each reads all stable
// specs of its major version up to its newest, and of the experimental ones only its own.
func CanRead(client, doc string) bool {
	c, ok1 := parseSpec(client)
	d, ok2 := parseSpec(doc)
	if !ok1 || !ok2 || c[0] != d[0] || d[3] == 0 && c != d {
		return false
	}
	return Compare(doc, client) <= 0
}

// maxAccept is the longest Accept header that is read; Ignition's own has about 70 bytes.
const maxAccept = 1024

// Negotiate reads the newest spec that a client understands from its Accept header, which Ignition sends with every
// fetch: application/vnd.coreos.ignition+json;version=3.3.0, */*;q=0.1. ok is false for any other client.
func Negotiate(accept string) (version string, ok bool) {
	if len(accept) > maxAccept {
		return "", false
	}
	for item := range strings.SplitSeq(accept, ",") {
		media, params, _ := strings.Cut(item, ";")
		if !strings.EqualFold(strings.TrimSpace(media), ContentType) {
			continue
		}
		offered, refused := "", false
		for p := range strings.SplitSeq(params, ";") {
			key, value, _ := strings.Cut(strings.TrimSpace(p), "=")
			value = strings.Trim(strings.TrimSpace(value), `"`)
			switch strings.ToLower(strings.TrimSpace(key)) {
			case "version":
				offered = value
			case "q":
				q, err := strconv.ParseFloat(value, 64)
				refused = err != nil || q <= 0
			}
		}
		if _, valid := parseSpec(offered); valid && !refused && (!ok || Compare(offered, version) > 0) {
			version, ok = offered, true
		}
	}
	return version, ok
}

// SpecOf returns the spec that an Ignition document is written in, "" if it says none.
func SpecOf(doc []byte) string {
	var d struct {
		Ignition struct {
			Version string `json:"version"`
		} `json:"ignition"`
	}
	if json.Unmarshal(doc, &d) != nil {
		return ""
	}
	if _, ok := parseSpec(d.Ignition.Version); !ok {
		return ""
	}
	return d.Ignition.Version
}

// Validate reads a document as Ignition does, with harmless values in place of late ones. Every entry of Ignition's
// report is an error.
func Validate(doc []byte) machineconfig.Report {
	var out machineconfig.Report
	plain, err := late.Inject(doc, harmless)
	if err != nil {
		out.Errorf("", "invalid", "%v", err)
		return out
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(plain, new(json.RawMessage)); errors.As(err, &syntax) {
		before := plain[:min(int(syntax.Offset), len(plain))]
		line, col := bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n')-1
		out.Errorf("", "invalid", "it is not JSON: %v", err).Source = fmt.Sprintf("document:%d:%d", line, max(col, 1))
		return out
	}
	_, rpt, err := v37.ParseCompatibleVersion(plain)
	addEntries(&out, rpt, nil, true)
	if err != nil && !out.HasErrors() {
		out.Errorf("", "invalid", "Ignition refuses it: %v", err)
	}
	return out
}

// harmless stands for a late value where only the form of a document is checked.
func harmless(ref string) ([]byte, error) {
	if strings.HasPrefix(ref, "session://") {
		return []byte("http://late.invalid/late"), nil
	}
	return []byte("late"), nil
}

// Upgrade translates an Ignition document of spec 2.0 to 2.3 to 3.0.0: its file systems become paths, where root is /.
// Errors are *inventory.Error of kind Invalid.
func Upgrade(doc []byte) (out []byte, err error) {
	defer func() { // the old parser is not ours and reads what users wrote
		if r := recover(); r != nil {
			out, err = nil, inventory.Errorf(inventory.Invalid, "the Ignition 2.x document cannot be read: %v", r)
		}
	}()
	old, rpt, err := v2.Parse(doc)
	if err != nil {
		msg := err.Error()
		if s := strings.TrimSpace(rpt.String()); s != "" {
			msg += ": " + inventory.Clean(s, 500)
		}
		return nil, inventory.Errorf(inventory.Invalid, "the Ignition 2.x document is not valid: %s", msg)
	}
	mounts, err := mountsOf(&old)
	if err != nil {
		return nil, err
	}
	// A file system that is only made, and mounted by a unit, has no place; the translator wants one for each.
	for i, fs := range old.Storage.Filesystems {
		if _, ok := mounts[fs.Name]; !ok {
			mounts[fs.Name] = fmt.Sprintf("%s%d", nowhere, i)
		}
	}
	res, err := v23tov30.Translate(old, mounts)
	for i, fs := range res.Storage.Filesystems {
		if fs.Path != nil && strings.HasPrefix(*fs.Path, nowhere) {
			res.Storage.Filesystems[i].Path = nil
		}
	}
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "the Ignition 2.x document cannot be translated to 3.0.0: %v", err).
			WithHint("Ignition 3 has no duplicate paths and no networkd section: put such files under storage.files")
	}
	b, err := json.Marshal(res)
	if err != nil {
		return nil, inventory.Errorf(inventory.Internal, "write Ignition 3.0.0: %v", err)
	}
	return b, nil
}

// nowhere stands for the place of a file system that has none, while it is translated.
const nowhere = "/.slipway-nowhere-"

// mountsOf says where the file systems of a document are mounted. Those that only name a place are dropped from it:
// Ignition 3 has paths instead.
func mountsOf(old *v2types.Config) (map[string]string, error) {
	mounts := map[string]string{"root": "/"}
	var made []v2types.Filesystem
	for _, fs := range old.Storage.Filesystems {
		if fs.Path != nil {
			mounts[fs.Name] = *fs.Path
		} else {
			made = append(made, fs)
		}
	}
	old.Storage.Filesystems = made
	var used []string
	for _, f := range old.Storage.Files {
		used = append(used, f.Filesystem)
	}
	for _, d := range old.Storage.Directories {
		used = append(used, d.Filesystem)
	}
	for _, l := range old.Storage.Links {
		used = append(used, l.Filesystem)
	}
	for _, name := range used {
		if _, ok := mounts[name]; !ok {
			return nil, inventory.Errorf(inventory.Invalid, "the Ignition 2.x document writes to the file system %q, which has no path", inventory.Clean(name, 60)).
				WithHint("give storage.filesystems an entry with that name and a path, or use root")
		}
	}
	return mounts, nil
}

// addEntries makes findings of a report's entries. place turns a path into the pointer it comes from; nil leaves it.
// With isOwn the document is the admin's, and its line and column are the source.
func addEntries(out *machineconfig.Report, rpt report.Report, place func(string) string, isOwn bool) {
	for _, e := range rpt.Entries {
		at := strings.TrimPrefix(e.Context.String(), "$.")
		path := ""
		if place != nil {
			path = place(at)
		}
		msg := e.Message
		if path == "" && at != "" && at != "$" {
			msg = at + ": " + msg
		}
		f := out.Errorf(path, "ignition-"+e.Kind.String(), "%s", msg)
		ownWords(f)
		if isOwn && e.Marker.StartP != nil && e.Marker.StartP.Line > 0 {
			f.Source = fmt.Sprintf("document:%d:%d", e.Marker.StartP.Line, e.Marker.StartP.Column)
		}
	}
}
