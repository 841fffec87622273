package serve

import (
	"context"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
)

// Cmd is "slipway serve". A flag that is not given leaves the value of the configuration file, or the default.
type Cmd struct {
	Config          string              `help:"YAML file with settings; flags win over it." placeholder:"FILE"`
	Interface       []string            `help:"Interface on which machines boot; repeat for more." placeholder:"NAME"`
	DataDir         string              `help:"Database, artefacts and socket (default /var/lib/slipway)." placeholder:"DIR"`
	Database        string              `help:"URL of a PostgreSQL database (default: SQLite in the data directory)." placeholder:"URL"`
	Instance        string              `help:"Name of this server among those that share a database (default: its host name)." placeholder:"NAME"`
	Undrain         bool                `help:"Hold duties again, although an admin has drained this instance; for when no other is left."`
	InstanceListen  string              `help:"Address on which other servers of the database ask this one (default :8069)." placeholder:"ADDR"`
	PasswordFile    string              `name:"database-password-file" help:"File with its password." placeholder:"FILE"`
	AdminListen     string              `help:"Address of the admin listener (default 127.0.0.1:8067), or fd:N; beyond loopback it speaks TLS." placeholder:"ADDR"`
	AdminTLSCert    string              `name:"admin-tls-cert" help:"Certificate of the admin listener, a PEM file (default: signed by this site's own authority, beyond loopback)." placeholder:"FILE"`
	AdminTLSKey     string              `name:"admin-tls-key" help:"Its key." placeholder:"FILE"`
	TrustedProxy    []string            `help:"Address or network of a proxy in front of the admin listener that may name the source of requests; repeat for more." placeholder:"ADDR"`
	AdminHost       []string            `help:"One more name of the admin listener; repeat for more." placeholder:"NAME"`
	BootPort        int                 `help:"TCP port of the boot listener (default 80)." placeholder:"PORT"`
	BootTLSPort     int                 `name:"boot-tls-port" help:"TCP port of the boot listener over TLS, with this site's own CA (default none)." placeholder:"PORT"`
	Confidential    bool                `help:"Send secrets over TLS only; needs --boot-tls-port."`
	Loaders         []string            `help:"Folder with boot loaders that win over the installed packages; repeat for more." placeholder:"DIR"`
	Catalogue       string              `help:"File with more entries for the OS catalogue." placeholder:"FILE"`
	Site            string              `help:"Name of this site, the first part of the provider ids of Kubernetes nodes (default: default)." placeholder:"NAME"`
	Kubeconfig      string              `help:"Attach the cluster of this kubeconfig; it stays attached until it is detached." placeholder:"FILE"`
	EgressAllow     []string            `help:"Network that imports, controllers, webhooks and clusters may be in though it is refused otherwise, such as 127.0.0.0/8; repeat for more." placeholder:"CIDR"`
	Mode            string              `help:"First start: mode of the interface's subnet: auto, full, reservations, proxy, off (default auto)." placeholder:"MODE"`
	Range           string              `help:"First start: addresses to lease (default: the upper half of the network)." placeholder:"FIRST-LAST"`
	Unknown         string              `help:"First start: boot of machines that are not accepted: disk, wait, ignore (default disk)." placeholder:"POLICY"`
	BootMenu        *inventory.Duration `help:"Show a menu at the consoles of accepted hosts for that long: own disk, rescue, memory test (default 0: none)." placeholder:"DURATION"`
	NoAdvertise     bool                `help:"Leave IPv6 router solicitations unanswered."`
	NoCheckConflict bool                `help:"Lease addresses without asking the network first."`
	KeepStrangers   *inventory.Duration `help:"How long a silent host stays that nobody has accepted; 0 means without end (default 168h)." placeholder:"DURATION"`
	KeepHistory     *inventory.Duration `help:"How long events, ended boots and closed issues stay; 0 means without end (default 2160h)." placeholder:"DURATION"`
	LogLevel        string              `help:"debug, info, warn or error (default info)." placeholder:"LEVEL"`
	LogFormat       string              `help:"text or json (default text)." placeholder:"FORMAT"`
}

// settings merges defaults, file and flags, and checks them.
func (c *Cmd) settings(version string) (Config, error) {
	cfg, err := c.merged(version)
	if err != nil {
		return cfg, err
	}
	return cfg, cfg.Validate()
}

// merged is settings whose interfaces need not be there.
func (c *Cmd) merged(version string) (Config, error) {
	cfg := Default()
	cfg.Version = version
	if c.Config != "" {
		if err := cfg.ReadFile(c.Config); err != nil {
			return cfg, err
		}
	}
	if c.Database != "" {
		if err := storage.CheckFlag(c.Database); err != nil {
			return cfg, err
		}
	}
	for _, s := range []struct {
		flag string
		to   *string
	}{
		{c.DataDir, &cfg.DataDir},
		{c.Database, &cfg.Database},
		{c.PasswordFile, &cfg.DatabasePasswordFile},
		{c.Instance, &cfg.Instance},
		{c.InstanceListen, &cfg.InstanceListen},
		{c.AdminListen, &cfg.AdminListen},
		{c.AdminTLSCert, &cfg.AdminTLSCert},
		{c.AdminTLSKey, &cfg.AdminTLSKey},
		{c.Catalogue, &cfg.Catalogue},
		{c.Site, &cfg.Site},
		{c.Kubeconfig, &cfg.Kubeconfig},
		{c.Mode, &cfg.Mode},
		{c.Range, &cfg.Range},
		{c.Unknown, &cfg.Unknown},
		{c.LogLevel, &cfg.LogLevel},
		{c.LogFormat, &cfg.LogFormat},
	} {
		if s.flag != "" {
			*s.to = s.flag
		}
	}
	if len(c.Interface) > 0 {
		cfg.Interfaces = c.Interface
	}
	if len(c.TrustedProxy) > 0 {
		cfg.TrustedProxies = c.TrustedProxy
	}
	if len(c.AdminHost) > 0 {
		cfg.AdminHosts = c.AdminHost
	}
	if len(c.EgressAllow) > 0 {
		cfg.Egress.Allow = c.EgressAllow
	}
	if len(c.Loaders) > 0 {
		cfg.Loaders = c.Loaders
	}
	if c.BootPort != 0 {
		cfg.BootPort = c.BootPort
	}
	if c.BootTLSPort != 0 {
		cfg.BootTLSPort = c.BootTLSPort
	}
	// A flag can switch this on and not off: a bool that is not given looks like false.
	cfg.Confidential = cfg.Confidential || c.Confidential
	cfg.Undrain = c.Undrain
	if c.KeepHistory != nil {
		cfg.KeepHistory = *c.KeepHistory
	}
	if c.KeepStrangers != nil {
		cfg.KeepStrangers = *c.KeepStrangers
	}
	if c.BootMenu != nil {
		cfg.BootMenu = *c.BootMenu
	}
	cfg.Advertise = cfg.Advertise && !c.NoAdvertise
	cfg.CheckConflict = cfg.CheckConflict && !c.NoCheckConflict
	return cfg, nil
}

// Serve runs the server until SIGINT or SIGTERM.
func (c *Cmd) Serve(version string) error {
	cfg, err := c.settings(version)
	if err != nil {
		return err
	}
	// A second signal does nothing more: what ends here is short. systemd sends SIGKILL after its own time-out.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return Run(ctx, cfg)
}

// Doctor checks the machine as a server with these flags would use it, with or without a server that runs. It returns the
// settings that it went by, and the process of the server that uses the data directory, 0 for none.
func (c *Cmd) Doctor(ctx context.Context, version string) (cfg Config, checks []Check, server int, err error) {
	if cfg, err = c.merged(version); err != nil {
		return cfg, nil, 0, err
	}
	f := cfg.facts(cfg.ports())
	if !cfg.storage().IsServer() {
		f.Database.WaitLocker(f.ServerPID)
	}
	checks = doctor.Judge(f)
	if cfg.storage().IsServer() && f.ServerPID == 0 { // a server that runs asks by itself
		checks = append(checks, cfg.storage().Probe())
	}
	if k, ok := keys.CheckFile(cfg.DataDir); ok && f.ServerPID == 0 {
		checks = append(checks, k)
	}
	if len(cfg.Interfaces) == 0 {
		checks = append(checks, Check{
			Name: "interfaces", Status: warning, Detail: "none is named, so none was checked",
			Hint: "write interfaces: [NAME] into " + UsualConfig + ", or name them: slipway doctor --interface NAME",
		})
	}
	loaders, err := images.LoadLoaders(cfg.Loaders)
	if err != nil {
		return cfg, nil, 0, err
	}
	checks = append(checks, doctor.Loaders(loaders)...)
	if f.ServerPID != 0 {
		checks = append(checks, fetchLoaders(ctx, f, loaders)...)
	}
	if f.IsRoot && f.ServerPID == 0 { // a server that runs asks by itself
		for _, i := range f.Interfaces {
			if i.IsUp && len(i.Prefixes) > 0 {
				heard, err := cfg.foreign(ctx, i.Name)
				checks = append(checks, doctor.OtherServers(i.Name, heard, err))
			}
		}
	}
	return cfg, append(checks, cfg.checkAuthority(f.Now)...), f.ServerPID, nil
}

// fetchLoaders asks the server that runs for a loader on each of its interfaces.
func fetchLoaders(ctx context.Context, f *doctor.Facts, loaders *images.Loaders) (checks []Check) {
	file, ok := loaders.Find(doctor.LoaderToFetch(loaders))
	if !ok {
		return nil // the check of loaders says what is missing
	}
	for _, i := range f.Interfaces {
		if i.IsUp && len(i.Prefixes) > 0 {
			// The kernel sends this over loopback, so that no firewall of the network is tested, but the server and its address
			// are.
			server := netip.AddrPortFrom(i.Prefixes[0].Addr(), tftpPort)
			checks = append(checks, doctor.FetchLoader(ctx, i.Name, server, file.Name, file.Data))
		}
	}
	return checks
}
