package validation

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/docschema"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// checker collects findings about one configuration.
type checker struct {
	c *machineconfig.Config
	r machineconfig.Report
}

// invalid adds the error that the value at a path has the wrong form.
func (v *checker) invalid(p, hint, format string, args ...any) {
	v.r.Errorf(p, "invalid", format, args...).Hint = hint
}

// match reports whether s matches re. If not, it adds a finding.
func (v *checker) match(p, s string, re *regexp.Regexp, what, hint string) bool {
	if re.MatchString(s) {
		return true
	}
	v.invalid(p, hint, "%s is not %s", shown(s), what)
	return false
}

// oneOf reports whether s is among the allowed words.
func (v *checker) oneOf(p, s string, allowed ...string) bool {
	if slices.Contains(allowed, s) {
		return true
	}
	hint := "use one of " + strings.Join(allowed, ", ")
	if near := v.near(s, allowed); near != "" {
		hint = near
	}
	v.invalid(p, hint, "%s is not known here", shown(s))
	return false
}

// near returns a hint with the name that may have been meant, "" if none is near. Beyond some errors it looks no more.
func (v *checker) near(name string, among []string) string {
	if len(v.r) < 50 {
		if n := docschema.NearestKey(name, among[:min(len(among), 1000)]); n != "" {
			return "did you mean " + n + "?"
		}
	}
	return ""
}

// shown quotes a value for a message.
func shown(s string) string { return strconv.Quote(inventory.Clean(s, 80)) }

// duplicates says which keys are in a list more than once.
func (v *checker) duplicates(p string, keys []string) {
	seen := make(map[string]bool, len(keys))
	for _, k := range keys {
		if seen[k] && k != "" {
			v.r.Errorf(pointer.Add(p, k), "duplicate", "is in the list twice").Hint = "remove one of them"
		}
		seen[k] = true
	}
}

func (v *checker) atMost(p string, n, most int) {
	if n > most {
		v.r.Errorf(p, "too-many", "has %d items; at most %d are allowed", n, most)
	}
}

// isControl reports characters that no line of a file or console should hold.
func isControl(r rune) bool { return r < 0x20 || r == 0x7f || r == 0x2028 || r == 0x2029 }

// oneLine reports whether s is a single line of text without control characters, at most limit bytes long.
func (v *checker) oneLine(p, s string, limit int) bool {
	switch {
	case strings.ContainsFunc(s, isControl):
		v.invalid(p, "write it on one line, without control characters", "%s holds a line end or control character", shown(s))
	case len(s) > limit:
		v.invalid(p, "", "is %d bytes long; at most %d are allowed", len(s), limit)
	default:
		return true
	}
	return false
}

// absolute reports whether s is a path that names one place only.
func (v *checker) absolute(p, s string) bool {
	switch {
	case !strings.HasPrefix(s, "/"):
		v.invalid(p, "begin with /", "%s is not an absolute path", shown(s))
	case path.Clean(s) != s:
		v.invalid(p, "write "+path.Clean(s), "%s has needless parts", shown(s))
	default:
		return v.oneLine(p, s, 1024)
	}
	return false
}

// secret checks a reference secret://name or secret://name#key.
func (v *checker) secret(p, ref string) {
	name, ok := strings.CutPrefix(ref, "secret://")
	if !ok || !late.IsSecretName(name) {
		v.invalid(p, "write secret://NAME; make it with: slipway secret set NAME", "%s is not a reference to a secret", shown(ref))
	}
}

// webURL checks a URL of a web server and returns its scheme, "" if it is none.
func (v *checker) webURL(p, s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("\"'`\\<>", r) }):
		v.invalid(p, "spaces and quotes are written as %20, %22 and %27", "%s is not a URL", shown(s))
	case u.Scheme != "http" && u.Scheme != "https":
		v.invalid(p, "use https://", "%s is not a URL of a web server", shown(s))
	case u.Hostname() == "":
		v.invalid(p, "", "%s names no server", shown(s))
	case u.User != nil:
		v.invalid(p, "let the file be fetched without, or store it as a secret", "holds a user name or password")
	default:
		return u.Scheme
	}
	return ""
}

var sha256RE = regexp.MustCompile(`^[0-9a-f]{64}$`)

// remote checks what a machine fetches.
func (v *checker) remote(p string, r *machineconfig.Remote) {
	scheme := v.webURL(pointer.Add(p, "url"), r.URL)
	switch {
	case r.SHA256 != "":
		v.match(pointer.Add(p, "sha256"), r.SHA256, sha256RE, "a SHA-256 sum", "write 64 hex digits in lower case, as sha256sum prints them")
	case scheme == "http":
		v.r.Errorf(pointer.Add(p, "sha256"), "missing", "is needed: over http anybody on the way could change the content").
			Hint = "add the output of sha256sum, or use https"
	}
}

// device checks how a disk is chosen.
func (v *checker) device(p string, d machineconfig.DeviceSelector) {
	if d.Path != "" {
		v.devicePath(pointer.Add(p, "path"), d.Path)
	}
	for name, s := range map[string]string{"serial": d.Serial, "wwn": d.WWN, "model": d.Model} {
		v.oneLine(pointer.Add(p, name), s, 255)
	}
	choices := []string{string(machineconfig.Largest), string(machineconfig.Smallest), string(machineconfig.Fastest)}
	if d.Choose != "" && v.oneOf(pointer.Add(p, "choose"), string(d.Choose), choices...) &&
		(d.Path != "" || d.Serial != "" || d.WWN != "") {
		v.r.Errorf(pointer.Add(p, "choose"), "conflict", "chooses among disks, and path, serial or wwn names one").
			Hint = "remove one of them"
	}
	switch {
	case d.MinGiB < 0 || d.MaxGiB < 0:
		v.invalid(p, "", "has a negative size")
	case d.MaxGiB > 0 && d.MinGiB > d.MaxGiB:
		v.invalid(pointer.Add(p, "minGiB"), "", "is more than maxGiB")
	}
}

var devicePathRE = regexp.MustCompile(`^/dev(/[A-Za-z0-9][A-Za-z0-9_.:+@=,#%~\\-]*)+$`)

func (v *checker) devicePath(p, s string) {
	v.match(p, s, devicePathRE, "a device", "write it as /dev/sda or /dev/disk/by-id/...")
}

// form checks a value that may be absent.
func (v *checker) form(p, s string, re *regexp.Regexp, what, hint string) {
	if s != "" {
		v.match(p, s, re, what, hint)
	}
}

func (v *checker) name(p, noun, s string) {
	if s != "" && inventory.CheckName(noun, s) != nil {
		v.invalid(p, "use 1 to 63 of a-z, 0-9 and -", "%s is not the name of a %s", shown(s), noun)
	}
}

var (
	numberRE  = regexp.MustCompile(`^[0-9]{1,10}$`)
	accountRE = regexp.MustCompile(`^[a-z_][a-z0-9_-]{0,30}\$?$`)
)

const accountHint = "use up to 32 of a-z, 0-9, _ and -, beginning with a letter or _"
