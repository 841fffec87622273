// Package serve is the server as a process. It reads the settings, opens the store, connects the listeners to the engine, and
// keeps them running until the signal to stop. It decides nothing about any machine.
//
// Start reading at Config. Each part of the server has a file. The appliance holds them all: start in appliance.go makes them, doors.go
// opens the ports, and Run in serve.go goes from the start to the end.
//
// # Start
//
// Run locks the data directory, opens and migrates the database, checks the machine, and makes the parts (start). It then opens
// all ports (doors.go). A fault up to here leaves nothing behind. Only after that does settle write the first subnets and the first
// token, and the listeners answer.
//
// # Work
//
// Each part runs in a goroutine of its own and watches one context. A part that fails ends the whole server, and systemd starts
// it again. Watchers of the machine log their faults, open issues, and go on.
//
// # End
//
// The listeners end first and finish what they have. The engine ends after them and writes what they have noted. The store and
// the lock come last.
//
// # Crash
//
// A kill at any moment is allowed. A lease is on disk before its ACK, a state before its action, and a file gets its name after
// its bytes are on disk. The next start continues every operation from its last stored step, and sweeps the boots of before.
package serve

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/access"
	"slipway.dev/slipway/web/proxy"
)

// Config is what the process needs to know; everything about hosts and networks is in the store. The YAML keys of the
// optional file are those of the struct; flags win over the file.
type Config struct {
	Interfaces []string `yaml:"interfaces"` // where machines boot
	DataDir    string   `yaml:"dataDir"`    // database, artefacts, socket
	Database   string   `yaml:"database"`   // URL of a PostgreSQL database; empty: SQLite, in the data directory
	// DatabasePasswordFile is empty for the systemd credential database-password, if there is one.
	DatabasePasswordFile string `yaml:"databasePasswordFile"`
	Undrain              bool   `yaml:"-"`        // end a drain of this instance: for one start only, so it is no key of the file
	Instance             string `yaml:"instance"` // name of this server among those that share a database; empty: its host name

	// InstanceListen is where other instances of the database ask this one: host:port, or :port on all addresses.
	InstanceListen string `yaml:"instanceListen"`

	AdminListen  string `yaml:"adminListen"`  // address of the admin door, or fd:N for an open listener
	AdminTLSCert string `yaml:"adminTLSCert"` // certificate of the admin door, a PEM file; empty: by the site's own authority, where TLS is needed
	AdminTLSKey  string `yaml:"adminTLSKey"`  // its key
	ExternalURL  string `yaml:"externalURL"`  // of the admin door, as browsers reach it
	// TrustedProxies are in front of the admin door, and Slipway believes them where a request comes from: addresses or networks.
	TrustedProxies     []string `yaml:"trustedProxies"`
	AdminProxyProtocol bool     `yaml:"adminProxyProtocol"` // their connections begin with a header of the PROXY protocol
	AdminHosts         []string `yaml:"adminHosts"`         // more names by which people ask for the admin door; *.example.org
	SecondFactor       string   `yaml:"secondFactor"`       // least role whose users need one: viewer, operator, admin; empty: none
	OIDC               *OIDC    `yaml:"oidc"`               // by which people log in; nil: passwords and tokens
	BootPort           int      `yaml:"bootPort"`           // TCP port of the boot door on the provisioning addresses
	BootTLSPort        int      `yaml:"bootTLSPort"`        // and of the same over TLS; 0: none
	Confidential       bool     `yaml:"confidential"`       // send secrets over TLS only
	Loaders            []string `yaml:"loaders"`            // folders with boot loaders that win over the installed packages
	Quirks             []Quirk  `yaml:"quirks"`             // rows that win over the built-in quirk table
	Catalogue          string   `yaml:"catalogue"`          // file with more entries for the OS catalogue
	Site               string   `yaml:"site"`               // first part of the provider ids of Kubernetes nodes; empty: default
	Kubeconfig         string   `yaml:"kubeconfig"`         // of a cluster that is attached at the start
	Egress             Egress   `yaml:"egress"`             // which addresses the server connects to on behalf of others

	// What the first start writes for an interface whose network has no subnet yet.
	Mode    string `yaml:"mode"`    // auto, full, reservations or off
	Range   string `yaml:"range"`   // FIRST-LAST; empty: the upper half of the network
	Unknown string `yaml:"unknown"` // disk, wait or ignore

	Advertise     bool               `yaml:"advertise"`     // answer router solicitations, which spares iPXE a wait of 16 s
	BootMenu      inventory.Duration `yaml:"bootMenu"`      // how long people may choose at the consoles of accepted hosts; 0: no menu
	CheckConflict bool               `yaml:"checkConflict"` // ask the network before an address is leased for the first time
	KeepHistory   inventory.Duration `yaml:"keepHistory"`   // how long events, ended boots and closed issues stay; 0: without end
	KeepStrangers inventory.Duration `yaml:"keepStrangers"` // how long silent, unaccepted hosts stay; 0: without end
	// Deadlines replace how long steps of operations and boots may take before they count as late: netboot: 20m.
	Deadlines      map[string]inventory.Duration `yaml:"deadlines"`
	RecordConsoles bool                          `yaml:"recordConsoles"` // keep serial consoles open while something is done with their hosts
	LogLevel       string                        `yaml:"logLevel"`
	LogFormat      string                        `yaml:"logFormat"` // text or json

	Version string    `yaml:"-"`
	Out     io.Writer `yaml:"-"` // where a start prints the self-check
	LogTo   io.Writer `yaml:"-"`
}

// Quirk is a row of the quirk table as the file has it.
type Quirk struct {
	Vendor   string `yaml:"vendor"`   // pattern for the manufacturer, * at the end for a prefix
	Product  string `yaml:"product"`  // the same for the product
	Firmware string `yaml:"firmware"` // bios, uefi or uefi-http; empty: any
	DiskBoot string `yaml:"diskBoot"` // no-offer, exit or sanboot
	Loader   string `yaml:"loader"`   // boot file instead of the usual one
	Why      string `yaml:"why"`
}

// Default is the configuration of "slipway serve" without flags and file.
func Default() Config {
	return Config{
		DataDir: "/var/lib/slipway", InstanceListen: fmt.Sprint(":", peer.Port), AdminListen: "127.0.0.1:8067", BootPort: 80, Mode: "auto", Unknown: string(inventory.UnknownDisk),
		Advertise: true, CheckConflict: true, KeepHistory: inventory.Duration(90 * 24 * time.Hour), KeepStrangers: inventory.Duration(7 * 24 * time.Hour), LogLevel: "info", LogFormat: "text", Out: os.Stdout, LogTo: os.Stderr,
	}
}

// links returns where other instances reach this one.
func (c *Config) links() []string {
	if !c.storage().IsServer() {
		return nil
	}
	return lookup.Links(c.InstanceListen)
}

// Validate checks the settings as far as they can be without touching the network.
func (c *Config) Validate() error {
	if len(c.Interfaces) == 0 {
		return inventory.Errorf(inventory.Invalid, "no interface to serve machines on").
			WithHint("name one with --interface; this machine has: %s", strings.Join(interfaceNames(), " "))
	}
	for i, name := range c.Interfaces {
		if slices.Contains(c.Interfaces[:i], name) {
			return inventory.Errorf(inventory.Invalid, "interface %q is named twice", name).WithHint("name each interface once")
		}
		if _, err := net.InterfaceByName(name); err != nil {
			return inventory.Errorf(inventory.Invalid, "there is no interface %q", name).
				WithHint("this machine has: %s", strings.Join(interfaceNames(), " "))
		}
	}
	if _, _, err := c.badValue(); err != nil {
		return err
	}
	for _, name := range c.Interfaces {
		if i, err := net.InterfaceByName(name); err == nil && i.Flags&net.FlagLoopback != 0 {
			return inventory.Errorf(inventory.Invalid, "no machine boots on %q: it is the loopback interface", name).
				WithHint("this machine has: %s", strings.Join(interfaceNames(), " "))
		}
	}
	return nil
}

// badValue returns the first setting that cannot be as it is, by its key in the file and the row of a list, and why.
func (c *Config) badValue() (key string, row int, err error) {
	if c.BootPort < 1 || c.BootPort > 65535 {
		return "bootPort", 0, inventory.Errorf(inventory.Invalid, "boot port %d is not between 1 and 65535", c.BootPort).WithHint("write a port such as 80 or 8080")
	}
	switch {
	case c.BootTLSPort < 0 || c.BootTLSPort > 65535 || c.BootTLSPort != 0 && c.BootTLSPort == c.BootPort:
		return "bootTLSPort", 0, inventory.Errorf(inventory.Invalid, "boot TLS port %d is no port, or is the boot port", c.BootTLSPort).WithHint("write a port such as 443 or 8443")
	case c.Confidential && c.BootTLSPort == 0:
		return "confidential", 0, inventory.Errorf(inventory.Invalid, "--confidential sends secrets over TLS only, and no port speaks it").WithHint("add --boot-tls-port 443")
	}
	for _, s := range []struct {
		key, flag, value string
		allowed          []string
	}{
		{"mode", "--mode", c.Mode, []string{"auto", "full", "reservations", "proxy", "off"}},
		{"unknown", "--unknown", c.Unknown, []string{"disk", "wait", "ignore"}},
		{"logLevel", "--log-level", c.LogLevel, []string{"debug", "info", "warn", "error"}},
		{"logFormat", "--log-format", c.LogFormat, []string{"text", "json"}},
		{"secondFactor", "secondFactor", c.SecondFactor, []string{"", "viewer", "operator", "admin"}},
	} {
		if !slices.Contains(s.allowed, s.value) {
			return s.key, 0, inventory.Errorf(inventory.Invalid, "%s %q is not known", s.flag, s.value).WithHint("use one of: %s", strings.Join(s.allowed, " "))
		}
	}
	if c.KeepHistory < 0 || c.KeepHistory > 0 && c.KeepHistory < inventory.Duration(time.Hour) {
		return "keepHistory", 0, inventory.Errorf(inventory.Invalid, "--keep-history %s is shorter than an hour", c.KeepHistory).WithHint("use 0 to keep history without end")
	}
	if c.KeepStrangers < 0 || c.KeepStrangers > 0 && c.KeepStrangers < inventory.Duration(time.Minute) {
		return "keepStrangers", 0, inventory.Errorf(inventory.Invalid, "--keep-strangers %s is shorter than a minute", c.KeepStrangers).WithHint("use 0 to keep them without end")
	}
	if c.BootMenu < 0 || c.BootMenu > 0 && c.BootMenu < inventory.Duration(time.Second) || c.BootMenu > inventory.Duration(10*time.Minute) {
		return "bootMenu", 0, inventory.Errorf(inventory.Invalid, "--boot-menu %s is not between 1s and 10m", c.BootMenu).WithHint("use 0 for no menu")
	}
	for name, d := range c.Deadlines {
		if !slices.Contains(operation.StepNames(), name) {
			return "deadlines", 0, inventory.Errorf(inventory.Invalid, "deadlines: %q is no step", name).WithHint("steps are: %s", strings.Join(operation.StepNames(), " "))
		}
		if d < inventory.Duration(time.Second) {
			return "deadlines", 0, inventory.Errorf(inventory.Invalid, "deadlines: %s for %s is shorter than a second", d, name).WithHint("leave it out for the usual one")
		}
	}
	if c.Instance != "" {
		if err := inventory.CheckName("instance", c.Instance); err != nil {
			return "instance", 0, err
		}
	}
	if _, port, err := net.SplitHostPort(c.InstanceListen); err != nil || port == "" {
		return "instanceListen", 0, inventory.Errorf(inventory.Invalid, "--instance-listen %q is not an address with a port", c.InstanceListen).
			WithHint("write it as :%d, or 192.0.2.1:%d", peer.Port, peer.Port)
	}
	if c.Site != "" {
		if err := inventory.CheckName("site", c.Site); err != nil {
			return "site", 0, err
		}
	}
	if c.Range != "" {
		if _, err := parseRange(c.Range); err != nil {
			return "range", 0, err
		}
	}
	if !strings.HasPrefix(c.AdminListen, "fd:") {
		if _, err := netip.ParseAddrPort(c.AdminListen); err != nil {
			return "adminListen", 0, inventory.Errorf(inventory.Invalid, "--admin-listen %q is not an address with a port", c.AdminListen).WithHint("write it as 127.0.0.1:8067")
		}
	}
	if (c.AdminTLSCert == "") != (c.AdminTLSKey == "") {
		return "adminTLSCert", 0, inventory.Errorf(inventory.Invalid, "a certificate and its key go together").WithHint("give both --admin-tls-cert and --admin-tls-key")
	}
	if key, err := c.storage().Check(); err != nil {
		return key, 0, err
	}
	if key, row, err := c.badOutside(); err != nil {
		return key, row, err
	}
	if _, err := c.oidc(); err != nil {
		return "oidc", 0, err
	}
	if _, err := egress.ParseAllow(c.Egress.Allow); err != nil {
		return "egress", 0, err
	}
	for i := range c.Quirks {
		if _, err := c.Quirks[i].row(); err != nil {
			return "quirks", i, err
		}
	}
	return "", 0, nil
}

// storage says where the inventory is.
func (c *Config) storage() storage.Settings {
	return storage.Settings{URL: c.Database, PasswordFile: c.DatabasePasswordFile, DataDir: c.DataDir}
}

// quirks returns the quirk table in force.
func (c *Config) quirks() ([]pxe.Quirk, error) {
	// The rows of the file come last, and so override what is built in.
	rows := pxe.BuiltinQuirks()
	for i := range c.Quirks {
		row, err := c.Quirks[i].row()
		if err != nil {
			return nil, fmt.Errorf("quirk %d of the configuration: %w", i+1, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// row is the quirk as boot decisions use it.
func (q Quirk) row() (pxe.Quirk, error) {
	row := pxe.Quirk{
		Vendor: q.Vendor, Product: q.Product, Firmware: inventory.Firmware(q.Firmware),
		DiskBoot: inventory.DiskBoot(q.DiskBoot), Loader: q.Loader, Why: q.Why, Source: "configuration",
	}
	return row, row.Validate()
}

func parseRange(s string) (inventory.Range, error) {
	first, last, _ := strings.Cut(s, "-")
	a, err1 := netip.ParseAddr(strings.TrimSpace(first))
	b, err2 := netip.ParseAddr(strings.TrimSpace(last))
	if err1 != nil || err2 != nil {
		return inventory.Range{}, inventory.Errorf(inventory.Invalid, "%q is not a range of addresses", s).WithHint("write it as 10.0.0.100-10.0.0.199")
	}
	return inventory.Range{First: a, Last: b}, nil
}

func interfaceNames() (names []string) {
	all, _ := net.Interfaces()
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 {
			names = append(names, i.Name)
		}
	}
	return names
}

// Egress says which addresses the server connects to on behalf of others, as the file has it.
type Egress struct {
	Allow []string `yaml:"allow"` // networks that are refused otherwise, such as 127.0.0.0/8
}

// badOutside checks what the settings say of the way from browsers to the admin door.
func (c *Config) badOutside() (key string, row int, err error) {
	for i, text := range c.TrustedProxies {
		if _, err := proxy.Parse([]string{text}); err != nil {
			return "trustedProxies", i, err
		}
	}
	if c.AdminProxyProtocol && len(c.TrustedProxies) == 0 {
		return "adminProxyProtocol", 0, inventory.Errorf(inventory.Invalid, "adminProxyProtocol needs trustedProxies: from everybody else no header is read").
			WithHint("trustedProxies: [10.0.0.5]")
	}
	for i, name := range c.AdminHosts {
		if err := inventory.CheckName("name of the admin listener", strings.TrimPrefix(name, "*.")); err != nil {
			return "adminHosts", i, err
		}
	}
	if c.ExternalURL == "" {
		return "", 0, nil
	}
	own, err := url.Parse(c.ExternalURL)
	if err != nil || own.Host == "" || own.Scheme != "https" && own.Scheme != "http" || strings.Trim(own.Path, "/") != "" || own.RawQuery != "" || own.Fragment != "" || own.User != nil {
		return "externalURL", 0, inventory.Errorf(inventory.Invalid, "externalURL %q is no address without a path", inventory.Clean(c.ExternalURL, 200)).WithHint("externalURL: https://slipway.example.org")
	}
	return "", 0, nil
}

// behindProxy makes the admin listener read the headers of the PROXY protocol, where the settings ask for it.
func (c *Config) behindProxy(l net.Listener) net.Listener {
	if !c.AdminProxyProtocol {
		return l
	}
	return proxy.Listen(l, c.proxies())
}

// linkPort is the port of --instance-listen.
func (c *Config) linkPort() (uint16, error) {
	_, port, err := net.SplitHostPort(c.InstanceListen)
	if err != nil {
		return 0, err
	}
	n, err := net.LookupPort("tcp", port)
	return uint16(n), err
}

// externalURL is the address by which browsers reach the admin listener, without a slash at its end; "": not said.
func (c *Config) externalURL() string { return strings.TrimRight(c.ExternalURL, "/") }

// proxies are the trusted ones; the settings have been checked.
func (c *Config) proxies() proxy.Trusted {
	t, _ := proxy.Parse(c.TrustedProxies)
	return t
}

// oidc returns the provider of identities, nil where none is named.
func (c *Config) oidc() (*access.OIDC, error) {
	if c.OIDC == nil {
		return nil, nil
	}
	return c.OIDC.web(c.ExternalURL)
}

// OIDC is the provider of identities as the file has it.
type OIDC struct {
	Issuer           string                      `yaml:"issuer"`
	ClientID         string                      `yaml:"clientID"`
	ClientSecretFile string                      `yaml:"clientSecretFile"` // empty: a public client
	Title            string                      `yaml:"title"`            // on the login page; empty: single sign-on
	Scopes           []string                    `yaml:"scopes"`           // besides openid; empty: profile and email
	NameClaim        string                      `yaml:"nameClaim"`        // empty: preferred_username
	GroupsClaim      string                      `yaml:"groupsClaim"`      // empty: groups
	Groups           map[string]inventory.Grants `yaml:"groups"`           // roles of each group
	CAFile           string                      `yaml:"caFile"`           // who vouches for the provider's certificate; empty: the system's
}

// web returns the provider as the admin door uses it; its files are read.
func (o *OIDC) web(externalURL string) (*access.OIDC, error) {
	out := &access.OIDC{
		Issuer: o.Issuer, ClientID: o.ClientID, Title: o.Title, Scopes: o.Scopes, NameClaim: o.NameClaim, GroupsClaim: o.GroupsClaim,
		Groups: o.Groups, ExternalURL: strings.TrimRight(externalURL, "/"),
	}
	for _, d := range []struct {
		to *string
		is string
	}{{&out.Title, "single sign-on"}, {&out.NameClaim, "preferred_username"}, {&out.GroupsClaim, "groups"}} {
		if *d.to == "" {
			*d.to = d.is
		}
	}
	if out.Scopes == nil {
		out.Scopes = []string{"profile", "email"}
	}
	if err := inventory.CheckText("oidc: title", out.Title, 60); err != nil {
		return nil, err
	}
	if o.ClientSecretFile != "" {
		text, err := readSmall(o.ClientSecretFile)
		if err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "oidc: clientSecretFile: %s", err).WithHint("write the secret that the provider gave to a file that only Slipway's user can read")
		}
		out.ClientSecret = strings.TrimSpace(string(text))
	}
	if o.CAFile != "" {
		text, err := readSmall(o.CAFile)
		if err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "oidc: caFile: %s", err).WithHint("it is a PEM file")
		}
		out.CA = text
	}
	return out, out.Validate()
}

// readSmall reads a file of at most 64 KiB that is not empty.
func readSmall(path string) ([]byte, error) { return readBounded(path, 64<<10) }

func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, err
	// A file that does not end, such as a device, must not fill the memory of a start.
	case int64(len(text)) > limit:
		return nil, fmt.Errorf("%s is over %d KiB long", path, limit>>10)
	case strings.TrimSpace(string(text)) == "":
		return nil, errors.New(path + " is empty")
	}
	return text, nil
}
