package machineconfig

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Validate finds everything that is wrong with a configuration in any format. It is for merged, filled and expanded
// ones. Findings name the layer that set the value.
func Validate(c *Config) Report {
	v := &checker{c: c}
	v.counts()
	if !v.r.HasErrors() { // otherwise the other checks might take long
		v.all()
	}
	where := sources{provenance: c.Provenance}
	for i := range v.r {
		v.r[i].Source = where.of(v.r[i].Path)
	}
	return v.r
}

func (v *checker) all() {
	v.host()
	v.boot()
	v.network()
	v.storage()
	v.accounts()
	v.access()
	v.tree()
	v.units()
	v.kernel()
	v.time()
	v.software()
	v.trust()
	v.commands()
	v.scripts()
	v.bootstrap()
}

// sources finds where values were set.
type sources struct {
	provenance map[string]string
	sorted     []string // the keys of provenance, once they are needed
}

// of returns where the value at a path was set, or else a part of it, or what it is part of.
func (s *sources) of(p string) string {
	if where, ok := s.provenance[p]; ok || len(s.provenance) == 0 {
		return where
	}
	if s.sorted == nil {
		s.sorted = sortedKeys(s.provenance)
	}
	for ; p != ""; p = parent(p) {
		if where, ok := s.provenance[p]; ok {
			return where
		}
		if i, _ := slices.BinarySearch(s.sorted, p+"/"); i < len(s.sorted) && strings.HasPrefix(s.sorted[i], p+"/") {
			return s.provenance[s.sorted[i]]
		}
	}
	return ""
}

// checker collects findings about one configuration.
type checker struct {
	c *Config
	r Report
}

// invalid adds the error that the value at a path has the wrong form.
func (v *checker) invalid(p, hint, format string, args ...any) {
	v.r.Errorf(p, "invalid", format, args...).Hint = hint
}

// match reports whether s has the form of re, and says so otherwise.
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
		if n := nearest(name, among[:min(len(among), 1000)]); n != "" {
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
			v.r.Errorf(pointer(p, k), "duplicate", "is in the list twice").Hint = "remove one of them"
		}
		seen[k] = true
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

// isSecretName accepts the name of a secret, or name#key for one text of a secret that is a map.
func isSecretName(s string) bool {
	name, key, isPart := strings.Cut(s, "#")
	return inventory.CheckName("secret", name) == nil && (!isPart || secretKeyRE.MatchString(key))
}

var secretKeyRE = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// secret checks a reference secret://name or secret://name#key.
func (v *checker) secret(p, ref string) {
	name, ok := strings.CutPrefix(ref, "secret://")
	if !ok || !isSecretName(name) {
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
func (v *checker) remote(p string, r *Remote) {
	scheme := v.webURL(pointer(p, "url"), r.URL)
	switch {
	case r.SHA256 != "":
		v.match(pointer(p, "sha256"), r.SHA256, sha256RE, "a SHA-256 sum", "write 64 hex digits in lower case, as sha256sum prints them")
	case scheme == "http":
		v.r.Errorf(pointer(p, "sha256"), "missing", "is needed: over http anybody on the way could change the content").
			Hint = "add the output of sha256sum, or use https"
	}
}

// limits is how many items the lists of a configuration may have.
var limits = []struct {
	path string
	most int
	has  func(c *Config) int
}{
	{"/files", 4096, func(c *Config) int { return len(c.Files) }},
	{"/directories", 4096, func(c *Config) int { return len(c.Dirs) }},
	{"/links", 4096, func(c *Config) int { return len(c.Links) }},
	{"/users", 1024, func(c *Config) int { return len(c.Users) }},
	{"/groups", 1024, func(c *Config) int { return len(c.Groups) }},
	{"/units", 1024, func(c *Config) int { return len(c.Units) }},
	{"/commands", 1024, func(c *Config) int { return len(c.Commands) }},
	{"/network/interfaces", 256, func(c *Config) int { return len(c.Network.Interfaces) }},
	{"/network/bonds", 64, func(c *Config) int { return len(c.Network.Bonds) }},
	{"/network/vlans", 1024, func(c *Config) int { return len(c.Network.VLANs) }},
	{"/network/bridges", 256, func(c *Config) int { return len(c.Network.Bridges) }},
	{"/network/wireguards", 64, func(c *Config) int { return len(c.Network.WireGuards) }},
	{"/network/dns", 16, func(c *Config) int { return len(c.Network.DNS) }},
	{"/network/search", 32, func(c *Config) int { return len(c.Network.Search) }},
	{"/storage/disks", 256, func(c *Config) int { return len(c.Storage.Disks) }},
	{"/storage/raids", 64, func(c *Config) int { return len(c.Storage.RAIDs) }},
	{"/storage/luks", 256, func(c *Config) int { return len(c.Storage.LUKS) }},
	{"/storage/lvm", 64, func(c *Config) int { return len(c.Storage.LVM) }},
	{"/storage/filesystems", 256, func(c *Config) int { return len(c.Storage.Filesystems) }},
	{"/storage/mounts", 256, func(c *Config) int { return len(c.Storage.Mounts) }},
	{"/scripts", 256, func(c *Config) int { return len(c.Scripts) }},
	{"/host/metaData", 256, func(c *Config) int { return len(c.Host.MetaData) }},
	{"/sshd/ports", 16, func(c *Config) int { return len(c.SSHD.Ports) }},
	{"/sshd/settings", 256, func(c *Config) int { return len(c.SSHD.Settings) }},
	{"/sshd/allowUsers", 256, func(c *Config) int { return len(c.SSHD.AllowUsers) }},
	{"/sshd/allowGroups", 256, func(c *Config) int { return len(c.SSHD.AllowGroups) }},
	{"/firewall/services", 256, func(c *Config) int { return len(c.Firewall.Services) }},
	{"/firewall/ports", 1024, func(c *Config) int { return len(c.Firewall.Ports) }},
	{"/packages/groups", 256, func(c *Config) int { return len(c.Packages.Groups) }},
	{"/packages/remove", 1024, func(c *Config) int { return len(c.Packages.Remove) }},
	{"/packages/pins", 1024, func(c *Config) int { return len(c.Packages.Pins) }},
	{"/packages/snaps", 256, func(c *Config) int { return len(c.Packages.Snaps) }},
	{"/kernel/args", 256, func(c *Config) int { return len(c.Kernel.Args) }},
	{"/kernel/removeArgs", 256, func(c *Config) int { return len(c.Kernel.RemoveArgs) }},
	{"/kernel/modules", 256, func(c *Config) int { return len(c.Kernel.Modules) }},
	{"/kernel/sysctl", 1024, func(c *Config) int { return len(c.Kernel.Sysctl) }},
	{"/time/ntpServers", 16, func(c *Config) int { return len(c.Time.NTPServers) }},
	{"/packages/install", 4096, func(c *Config) int { return len(c.Packages.Install) }},
	{"/packages/hold", 1024, func(c *Config) int { return len(c.Packages.Hold) }},
	{"/packages/repos", 64, func(c *Config) int { return len(c.Packages.Repos) }},
	{"/extensions", 64, func(c *Config) int { return len(c.Extensions) }},
	{"/trust/cas", 256, func(c *Config) int { return len(c.Trust.CAs) }},
}

// counts refuses lists that nobody writes by hand.
func (v *checker) counts() {
	for _, l := range limits {
		v.atMost(l.path, l.has(v.c), l.most)
	}
}

func (v *checker) atMost(p string, n, most int) {
	if n > most {
		v.r.Errorf(p, "too-many", "has %d items; at most %d are allowed", n, most)
	}
}

var (
	hostnameRE  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
	domainRE    = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?)*$`)
	machineIDRE = regexp.MustCompile(`^[0-9a-f]{32}$`)
	localeRE    = regexp.MustCompile(`^(C|POSIX|[a-z]{2,3}(_[A-Z]{2})?)(\.[A-Za-z0-9-]{1,20})?(@[a-z]{1,20})?$`)
	keymapRE    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	timezoneRE  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]{0,31}(/[A-Za-z0-9_+-]{1,31}){0,2}$`)
)

func (v *checker) host() {
	h := v.c.Host
	if h.Hostname != "" {
		hint := "use 1 to 63 letters, digits and -, beginning and ending with a letter or digit"
		if name, rest, dotted := strings.Cut(h.Hostname, "."); dotted {
			hint = fmt.Sprintf("write hostname: %s and domain: %s", inventory.Clean(name, 63), inventory.Clean(rest, 80))
		}
		v.match("/host/hostname", h.Hostname, hostnameRE, "a host name", hint)
	}
	if h.Domain != "" && v.match("/host/domain", h.Domain, domainRE, "a domain", "write it as rack1.example.com, without a dot at its ends") &&
		len(h.FQDN()) > 253 {
		v.invalid("/host/domain", "", "makes a name of %d letters; at most 253 are allowed", len(h.FQDN()))
	}
	for _, f := range []struct {
		path, s    string
		re         *regexp.Regexp
		what, hint string
	}{
		{"/host/machineID", h.MachineID, machineIDRE, "a machine id", "write 32 hex digits in lower case, as systemd-id128 new prints them"},
		{"/host/locale", h.Locale, localeRE, "a locale", "write it as en_US.UTF-8"},
		{"/host/keymap", h.Keymap, keymapRE, "a keymap", "write it as localectl list-keymaps does, such as de-latin1"},
		{"/host/timezone", h.Timezone, timezoneRE, "a time zone", "write it as timedatectl list-timezones does, such as Europe/Berlin"},
	} {
		if f.s != "" {
			v.match(f.path, f.s, f.re, f.what, f.hint)
		}
	}
	v.metaData()
	if h.MachineID != "" && strings.Trim(h.MachineID, "0") == "" {
		v.invalid("/host/machineID", "leave it out to let the machine draw one", "is zero")
	}
}

func (v *checker) boot() {
	v.device("/boot/rootDevice", v.c.Boot.RootDevice)
	if p := v.c.Boot.PowerAfter; p != "" {
		v.oneOf("/boot/powerAfter", string(p), string(Reboot), string(PowerOff))
	}
}

// device checks how a disk is chosen.
func (v *checker) device(p string, d DeviceSelector) {
	if d.Path != "" {
		v.devicePath(pointer(p, "path"), d.Path)
	}
	for name, s := range map[string]string{"serial": d.Serial, "wwn": d.WWN, "model": d.Model} {
		v.oneLine(pointer(p, name), s, 255)
	}
	if d.Choose != "" && v.oneOf(pointer(p, "choose"), string(d.Choose), string(Largest), string(Smallest), string(Fastest)) &&
		(d.Path != "" || d.Serial != "" || d.WWN != "") {
		v.r.Errorf(pointer(p, "choose"), "conflict", "chooses among disks, and path, serial or wwn names one").Hint = "remove one of them"
	}
	switch {
	case d.MinGiB < 0 || d.MaxGiB < 0:
		v.invalid(p, "", "has a negative size")
	case d.MaxGiB > 0 && d.MinGiB > d.MaxGiB:
		v.invalid(pointer(p, "minGiB"), "", "is more than maxGiB")
	}
}

var devicePathRE = regexp.MustCompile(`^/dev(/[A-Za-z0-9][A-Za-z0-9_.:+@=,#%~\\-]*)+$`)

func (v *checker) devicePath(p, s string) {
	v.match(p, s, devicePathRE, "a device", "write it as /dev/sda or /dev/disk/by-id/...")
}

var (
	kernelModuleRE = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	sysctlRE       = regexp.MustCompile(`^-?[a-z][A-Za-z0-9_-]*([./][A-Za-z0-9_*:@-]+)+$`)
)

func (v *checker) kernel() {
	k := v.c.Kernel
	for i, a := range k.Args {
		v.kernelArg("/kernel/args/"+strconv.Itoa(i), a)
	}
	for i, a := range k.RemoveArgs {
		v.kernelArg("/kernel/removeArgs/"+strconv.Itoa(i), a)
		if slices.Contains(k.Args, a) {
			v.r.Errorf("/kernel/removeArgs/"+strconv.Itoa(i), "conflict", "%s is added and removed", shown(a))
		}
	}
	for i, m := range k.Modules {
		v.match("/kernel/modules/"+strconv.Itoa(i), m, kernelModuleRE, "the name of a kernel module", "write it as lsmod does, without .ko and options")
	}
	for _, key := range sortedKeys(k.Sysctl) {
		at := pointer("/kernel/sysctl", key)
		v.match(at, key, sysctlRE, "a kernel setting", "write it as sysctl -a does, such as net.ipv4.ip_forward")
		if v.oneLine(at, k.Sysctl[key], 1024) && strings.TrimSpace(k.Sysctl[key]) == "" {
			v.r.Errorf(at, "missing", "has no value")
		}
	}
}

// kernelArg checks one argument: the kernel splits at spaces outside of double quotes.
func (v *checker) kernelArg(p, a string) {
	if !v.oneLine(p, a, 1024) {
		return
	}
	quoted := false
	for _, r := range a {
		if r == '"' {
			quoted = !quoted
		}
		if r == ' ' && !quoted {
			v.invalid(p, `make two of it, or quote it as dyndbg="file x +p"`, "%s has a space in it", shown(a))
			return
		}
	}
	switch {
	case quoted:
		v.invalid(p, "", "%s opens a quote that is not closed", shown(a))
	case a == "" || strings.HasPrefix(a, "="):
		v.invalid(p, "write it as name or name=value", "%s is not a kernel argument", shown(a))
	case a == "---" || a == "--":
		v.invalid(p, "leave it out: it ends the kernel's arguments", "%s is not a kernel argument", shown(a))
	}
}

func (v *checker) time() {
	for i, s := range v.c.Time.NTPServers {
		if _, err := netip.ParseAddr(s); err != nil {
			v.match("/time/ntpServers/"+strconv.Itoa(i), s, domainRE, "a time server", "write its name or address")
		}
	}
	if e := v.c.Time.Enabled; e != nil && !*e && len(v.c.Time.NTPServers) > 0 {
		v.r.Warnf("/time/enabled", "conflict", "is false, so that the time servers are not used")
	}
}

// sortedKeys makes findings come in one order.
func sortedKeys(m map[string]string) []string {
	return slices.Sorted(maps.Keys(m))
}
