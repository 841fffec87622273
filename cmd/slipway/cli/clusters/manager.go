package clusters

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/serve"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/kubernetes/manager"
	"slipway.dev/slipway/web/client"
)

// ManagerCommand runs the controllers of custom resources in a cluster, for an appliance that is elsewhere. Where that is
// say --server and --token-file.
type ManagerCommand struct {
	Namespace   string   `help:"Only objects of these namespaces, with commas; those of the token when empty." placeholder:"NAMES"`
	WatchFilter string   `help:"Only objects with the label cluster.x-k8s.io/watch-filter of this value." placeholder:"VALUE"`
	Sets        []string `help:"Sets of controllers to run: standalone, capi." enum:"standalone,capi" default:"standalone,capi"`
	LeaderElect bool     `help:"Act only while holding the lease, so that several pods may run."`
	HealthAddr  string   `help:"Answer /healthz and /readyz here, such as :8081." placeholder:"ADDRESS"`
	Kubeconfig  string   `help:"Of the cluster, outside of it; a pod uses its own account." type:"existingfile" placeholder:"FILE"`

	ClientCertFile string `help:"Certificate to show to a server with https." placeholder:"FILE"`
	ClientKeyFile  string `help:"Its key." placeholder:"FILE"`
	LogLevel       string `enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error."`
}

// frugal is how much of garbage, in percent of what is in use, may gather: a pod's memory is dearer than what collecting
// costs a process that mostly waits. GOGC says otherwise.
const frugal = 40

// Run runs the controllers until ctx ends.
func (c *ManagerCommand) Run(s *cli.Session, api *client.Client) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(frugal)
	}
	go cli.GiveBackMemory(s.Ctx)
	if s.Globals.Server == "" {
		return cli.Usage("such as --server http://10.0.0.1:8067 or SLIPWAY_SERVER", "the manager needs the address of the Slipway server")
	}
	conf, err := c.tls(s.Globals.Server, s.Globals.CAFile)
	if err != nil {
		return err
	}
	s.TLS = conf
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // kong has checked it
	log := slog.New(slog.NewTextHandler(s.Err, &slog.HandlerOptions{Level: level}))
	a, err := c.appliance(s, api, log)
	if err != nil {
		return err
	}
	bound, within := a.Bound()
	if bound == "" {
		log.Warn("the token is an admin of Slipway: anyone who reads it in the cluster is admin, too",
			"hint", "have an admin make one for this cluster: slipway token create NAME --cluster UID; the UID is that of the namespace kube-system")
	}
	namespaces := strings.FieldsFunc(c.Namespace, func(r rune) bool { return r == ',' })
	if len(namespaces) == 0 {
		namespaces = within
	}
	sets := slices.DeleteFunc(serve.Sets(), func(x manager.Set) bool { return !slices.Contains(c.Sets, string(x.Mode)) })
	return manager.RunInCluster(s.Ctx, manager.InCluster{
		Appliance: a, BoundTo: bound, Kubeconfig: c.Kubeconfig, Namespaces: namespaces,
		WatchFilter: c.WatchFilter, Sets: sets, Elect: c.LeaderElect, Health: c.HealthAddr, Log: log,
	})
}

// appliance waits for a server that does not answer yet: a pod that restarts would only wait longer.
func (c *ManagerCommand) appliance(s *cli.Session, api *client.Client, log *slog.Logger) (*backend.ClusterRemote, error) {
	for {
		a, err := backend.NewClusterRemote(s.Ctx, api)
		var e *inventory.Error
		if err == nil || s.Ctx.Err() != nil || !errors.As(err, &e) || e.Kind != inventory.Unavailable {
			return a, err
		}
		log.Warn("waiting for the server", "err", err)
		select {
		case <-s.Ctx.Done():
			return nil, s.Ctx.Err()
		case <-time.After(5 * time.Second):
		}
	}
}

// tls reads the files for a server with https; one with http needs none, even if they are named.
func (c *ManagerCommand) tls(server, caFile string) (*tls.Config, error) {
	if !strings.HasPrefix(server, "https://") {
		return nil, nil
	}
	conf, err := cli.Trusting(server, caFile)
	if err != nil {
		return nil, err
	}
	if conf == nil {
		conf = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if c.ClientCertFile != "" || c.ClientKeyFile != "" {
		pair, err := tls.LoadX509KeyPair(c.ClientCertFile, c.ClientKeyFile)
		if err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "cannot use the client certificate: %v", err).WithHint("--client-cert-file and --client-key-file go together")
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}
