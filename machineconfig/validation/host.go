package validation

import (
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

var (
	hostnameRE  = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$`)
	domainRE    = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?)*$`)
	machineIDRE = regexp.MustCompile(`^[0-9a-f]{32}$`)
	localeRE    = regexp.MustCompile(`^(C|POSIX|[a-z]{2,3}(_[A-Z]{2})?)(\.[A-Za-z0-9-]{1,20})?(@[a-z]{1,20})?$`)
	keymapRE    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
	timezoneRE  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_+-]{0,31}(/[A-Za-z0-9_+-]{1,31}){0,2}$`)
)

// system checks what the machine is called, how it boots, its kernel and its clock.
type system struct{ *checker }

func (v system) host() {
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

func (v system) boot() {
	v.device("/boot/rootDevice", v.c.Boot.RootDevice)
	if p := v.c.Boot.PowerAfter; p != "" {
		v.oneOf("/boot/powerAfter", string(p), string(machineconfig.Reboot), string(machineconfig.PowerOff))
	}
}

var (
	kernelModuleRE = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	sysctlRE       = regexp.MustCompile(`^-?[a-z][A-Za-z0-9_-]*([./][A-Za-z0-9_*:@-]+)+$`)
)

func (v system) kernel() {
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
	for _, key := range slices.Sorted(maps.Keys(k.Sysctl)) {
		at := pointer.Add("/kernel/sysctl", key)
		v.match(at, key, sysctlRE, "a kernel setting", "write it as sysctl -a does, such as net.ipv4.ip_forward")
		if v.oneLine(at, k.Sysctl[key], 1024) && strings.TrimSpace(k.Sysctl[key]) == "" {
			v.r.Errorf(at, "missing", "has no value")
		}
	}
}

// kernelArg checks one argument: the kernel splits at spaces outside of double quotes.
func (v system) kernelArg(p, a string) {
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

func (v system) time() {
	for i, s := range v.c.Time.NTPServers {
		if _, err := netip.ParseAddr(s); err != nil {
			v.match("/time/ntpServers/"+strconv.Itoa(i), s, domainRE, "a time server", "write its name or address")
		}
	}
	if e := v.c.Time.Enabled; e != nil && !*e && len(v.c.Time.NTPServers) > 0 {
		v.r.Warnf("/time/enabled", "conflict", "is false, so that the time servers are not used")
	}
}

// metaNames are names of the metadata that Slipway says itself.
var metaNames = []string{"instance-id", "instance_id", "local-hostname", "local_hostname", "hostname", "provider_id", "machine_id", "failure_domain"}

// metaData checks free names of ds.meta_data.
func (v system) metaData() {
	m := v.c.Host.MetaData
	for _, k := range slices.Sorted(maps.Keys(m)) {
		at := pointer.Add("/host/metaData", k)
		v.match(at, k, metaKeyRE, "a name of metadata", "use letters, digits, - and _, beginning with a letter")
		if slices.Contains(metaNames, k) {
			v.r.Errorf(at, "conflict", "is a name that Slipway says itself").Hint = "choose another name"
		}
		if late.HasMarker(m[k]) {
			v.r.Errorf(at, "late-value", "holds a secret, and cloud-init keeps metadata readable for every user").
				Hint = "write the secret into a file: files: [{path, secret}]"
		}
		v.oneLine(at, m[k], 4096)
	}
}
