package httpboot

import (
	"net/url"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// place is what a URL path names.
type place string

// The places of the boot door; docs/boot-http.md lists them.
const (
	// The places of the boot listener; docs/boot-http.md lists them.
	nowhere  place = ""
	loader   place = "loader"
	autoexec place = "autoexec.ipxe"
	ask      place = "ask"
	script   place = "script"
	artefact place = "artefact"
	report   place = "report"
	document place = "config"
	archive  place = pxe.ConfigArchive
	task     place = "agent/task"
	told     place = "agent/report"
)

// route is the parsed path of a URL. Its zero value is no place at all, which is a 404.
type route struct {
	place   place
	session inventory.SessionID // "" in URLs without one
	name    string              // of a loader, artefact or document
	key     string              // of a report, of the boot's agent, or of the documents that the agent places
	digest  inventory.Digest
}

const (
	maxPath = 1024
	maxName = 128
	// maxParts holds a document of the EC2 tree: boot, session, key, config, ec2, latest, meta-data, and two below.
	maxParts = 9
)

// parsePath parses an escaped path. Two slashes count as one: some firmware joins a folder and a name with two. A
// redirect to the right spelling would end its boot.
func parsePath(escaped string) route {
	if len(escaped) > maxPath {
		return route{}
	}
	var parts []string
	for _, s := range strings.Split(escaped, "/") {
		if s == "" {
			continue
		}
		s, err := url.PathUnescape(s)
		if err != nil || !isPlain(s) {
			return route{}
		}
		parts = append(parts, s)
	}
	if len(parts) < 2 || len(parts) > maxParts || parts[0] != "boot" {
		return route{}
	}
	parts = parts[1:]
	r := route{}
	if isSession(parts[0]) {
		r.session, parts = inventory.SessionID(parts[0]), parts[1:]
	}
	// A key looks like a session, so only its place in the path tells them apart: session first, then key.
	if r.session != "" && len(parts) > 1 && isSession(parts[0]) && parts[1] == string(document) {
		r.key, parts = parts[0], parts[1:]
	}
	if isFolder := strings.HasSuffix(escaped, "/"); r.session != "" && len(parts) > 0 && parts[0] == string(document) {
		r.place, r.name = document, strings.Join(parts[1:], "/")
		if isFolder && r.name != "" {
			r.name += "/"
		}
		return r
	}
	switch len(parts) {
	case 1:
		r.name = parts[0]
		r.place = placeOf(parts[0])
	case 2:
		switch full := place(parts[0] + "/" + parts[1]); {
		case r.session != "" && parts[0] == string(report):
			r.place, r.name, r.key = report, parts[0], parts[1]
		case r.session != "" && (full == task || full == told):
			r.place, r.name = full, parts[1]
		case pxe.IsLoader(string(full)):
			r.place, r.name = loader, string(full)
		}
	case 3:
		if full := place(parts[1] + "/" + parts[2]); r.session != "" && isSession(parts[0]) && (full == task || full == told) {
			r.place, r.key, r.name = full, parts[0], parts[2]
			return r
		}
		d, err := inventory.ParseDigest(parts[1])
		if parts[0] != string(artefact) || err != nil || d.Hex() != parts[1] {
			return route{}
		}
		r.place, r.digest, r.name = artefact, d, parts[2]
	}
	if r.place == nowhere {
		return route{}
	}
	return r
}

func placeOf(name string) place {
	switch name {
	case pxe.AutoexecName:
		return autoexec
	case string(ask), string(script), string(report), string(archive):
		return place(name)
	}
	if pxe.IsLoader(name) {
		return loader
	}
	return nowhere
}

// isPlain reports whether a decoded part of a path is a plain name. "..", slashes and control characters are not:
// they could leave a folder or forge a line of the log.
func isPlain(s string) bool {
	return s != "." && s != ".." && len(s) <= maxName &&
		strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '/' || r == '\\' }) < 0
}

// isSession reports whether a part of a path has the form of a session or a key: 128 bits in lower-case hex.
func isSession(s string) bool { return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == "" }
