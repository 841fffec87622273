// Package clusters owns the commands for Kubernetes: slipway cluster, target, apply, get, delete, convert, manifests and
// manager.
package clusters

import (
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/nouns"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/kubernetes/kubeconfig"
	"slipway.dev/slipway/kubernetes/manager"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// ClusterCommand is slipway cluster.
type ClusterCommand struct {
	List   nouns.List[cluster, inventory.Cluster] `cmd:"" help:"List attached clusters."`
	Show   nouns.Show[cluster, inventory.Cluster] `cmd:"" help:"Show an attached cluster."`
	Attach clusterAttach                          `cmd:"" help:"Attach a cluster: its custom resources say what is wanted from now on. Again: change how it is attached."`
	Check  clusterCheck                           `cmd:"" help:"Check an attached cluster, or one that could be."`
	Access clusterAccess                          `cmd:"" help:"Show or say from which clusters one may take machines over, and which pools it may use."`
	Detach clusterDetach                          `cmd:"" help:"Detach clusters; every server continues to run."`
}

// cluster is how people read an attached cluster.
type cluster struct{ nouns.Plain[inventory.Cluster] }

// Fields implements nouns.Noun.
func (cluster) Fields(f *nouns.Fields, c inventory.Cluster) {
	f.Both("name", c.Name)
	f.Both("state", string(c.State))
	f.Shown("reason", c.Reason)
	f.Shown("hint", c.Hint)
	f.Both("kubernetes", c.Kubernetes)
	f.Listed("modes", modesText(c))
	f.Listed("seen", cli.Ago(c.SeenAt, time.Now()))
	f.Listed("reason", c.Reason)
	f.Shown("uid", c.UID)
	f.Shown("seen", cli.TimeText(c.SeenAt))
	f.Shown("kubeconfig", c.Kubeconfig)
	f.Shown("modes", modesText(c))
	f.Shown("namespaces", joined(c.Namespaces))
	f.Shown("watch filter", c.WatchFilter)
	f.Shown("attached", cli.TimeText(c.CreatedAt))
}

func modesText(c inventory.Cluster) string {
	if len(c.Modes) == 0 {
		return "all"
	}
	return joined(c.Modes)
}

func joined[T ~string](items []T) (text string) {
	for i, item := range items {
		if i > 0 {
			text += ","
		}
		text += string(item)
	}
	return text
}

// clusterFlags say how a cluster is attached.
type clusterFlags struct {
	Namespace   []string `help:"Look at the objects of this namespace only; repeat for more." placeholder:"NAME"`
	WatchFilter string   `help:"Look at objects only whose label cluster.x-k8s.io/watch-filter has this value." placeholder:"VALUE"`
	Standalone  bool     `help:"Run the controllers of MetalMachine and its kin only." xor:"modes"`
	CAPI        bool     `name:"capi" help:"Run the controllers for Cluster API only." xor:"modes"`
}

func (f *clusterFlags) cluster(name string) inventory.Cluster {
	c := inventory.Cluster{Name: name, Kubeconfig: manager.KubeconfigSecret(name), Namespaces: f.Namespace, WatchFilter: f.WatchFilter}
	switch {
	case f.Standalone:
		c.Modes = []inventory.ClusterMode{inventory.ModeStandalone}
	case f.CAPI:
		c.Modes = []inventory.ClusterMode{inventory.ModeCAPI}
	}
	return c
}

type clusterAttach struct {
	Kubeconfig string `required:"" help:"File that says how to reach the cluster; - is standard input. The parts of its current context are stored, sealed." placeholder:"FILE"`
	Name       string `help:"Name of the cluster, a DNS label (default: as the current context)." placeholder:"NAME"`
	clusterFlags
	TakeOver bool          `help:"Confirm the identity of the cluster, although its certificate authority differs or is unknown. It then has the machines of that cluster."`
	NoCheck  bool          `help:"Attach it even if it cannot be reached now, or lacks something."`
	WaitFor  time.Duration `help:"How long to wait until its controllers run; 0 does not wait." default:"60s" placeholder:"DURATION"`
	DryRun   bool          `help:"Only look whether it could be attached."`
}

// readKubeconfig reads a kubeconfig where this command runs, whose files the server cannot see.
func readKubeconfig(s *cli.Session, path string) (name, text string, err error) {
	var b []byte
	if path == "-" {
		var raw string
		if raw, err = s.ReadText(path); err == nil {
			name, b, err = kubeconfig.Complete([]byte(raw))
		}
	} else {
		name, b, err = kubeconfig.Read(path)
	}
	return name, string(b), err
}

// Run attaches a cluster.
func (c *clusterAttach) Run(s *cli.Session, api *client.Client) error {
	name, text, err := readKubeconfig(s, c.Kubeconfig)
	if err != nil {
		return err
	}
	if c.Name != "" {
		name = c.Name
	}
	want := c.cluster(name)
	want.TakesOver = c.TakeOver
	if err := want.Validate(); err != nil {
		return err
	}
	if !c.NoCheck || c.DryRun {
		k, err := api.Clusters.CheckKubeconfig(s.Ctx, want, text)
		if err != nil {
			return err
		}
		if c.DryRun || !k.IsGood {
			return cli.ShowChecks(s, k, k.IsGood, k.Results)
		}
	}
	about := "kubeconfig of cluster " + name
	if _, err := api.SetSecret(s.Ctx, want.Kubeconfig, wire.SecretInput{Value: &text, About: &about}); err != nil {
		return err
	}
	stored, err := api.Clusters.Put(s.Ctx, name, want)
	if err != nil {
		return err
	}
	if stored, err = c.wait(s, api, stored); err != nil {
		return err
	}
	return s.Show(stored, func(t *cli.TableWriter) { nouns.Table[cluster](t, stored) })
}

// wait waits until the controllers run, here or elsewhere. A state from before is not looked at.
func (c *clusterAttach) wait(s *cli.Session, api *client.Client, stored inventory.Cluster) (inventory.Cluster, error) {
	end := time.Now().Add(c.WaitFor)
	for c.WaitFor > 0 {
		is, err := api.Clusters.Get(s.Ctx, stored.Name)
		if err != nil {
			return stored, err
		}
		stored = is
		switch stored.State {
		case inventory.ClusterAttached, inventory.ClusterStandby:
			return stored, nil
		case inventory.ClusterFailed:
			return stored, cli.Ended(stored.Reason, stored.Hint, "cluster %s is not attached yet", stored.Name)
		}
		if time.Now().After(end) || s.Ctx.Err() != nil {
			return stored, cli.Ended(stored.Reason, stored.Hint, "cluster %s is %s after %s; it goes on by itself", stored.Name, stored.State, c.WaitFor)
		}
		_ = sleep.For(s.Ctx, cli.LookEvery)
	}
	return stored, nil
}

type clusterCheck struct {
	Cluster    string `arg:"" optional:"" help:"One that is attached."`
	Kubeconfig string `help:"File of one that is not attached yet; - is standard input." placeholder:"FILE"`
	clusterFlags
}

// Run checks a cluster.
func (c *clusterCheck) Run(s *cli.Session, api *client.Client) error {
	if (c.Cluster == "") == (c.Kubeconfig == "") {
		return cli.Usage("slipway cluster check NAME, or slipway cluster check --kubeconfig FILE", "name a cluster, or give a kubeconfig")
	}
	name, text := c.Cluster, ""
	if c.Kubeconfig != "" {
		var err error
		if name, text, err = readKubeconfig(s, c.Kubeconfig); err != nil {
			return err
		}
	}
	var k wire.ClusterCheck
	var err error
	if text == "" {
		k, err = api.Clusters.Check(s.Ctx, name)
	} else {
		k, err = api.Clusters.CheckKubeconfig(s.Ctx, c.cluster(name), text)
	}
	if err != nil {
		return err
	}
	return cli.ShowChecks(s, k, k.IsGood, k.Results)
}

type clusterDetach struct {
	Clusters []string `arg:""`
	Purge    bool     `help:"Also delete Slipway's custom resource definitions there, with all their objects. All servers continue to run."`
	Force    bool     `help:"Even if the cluster does not answer. Its objects then keep Slipway's finalizers, and nobody can delete them."`
	DryRun   bool     `help:"Only show what would be forgotten."`
}

// Run detaches clusters.
func (c *clusterDetach) Run(s *cli.Session) error {
	if c.DryRun {
		return cli.Remove(s, cluster{}.Calls, c.Clusters, true)
	}
	return s.Each(c.Clusters, func(api *client.Client, name string) error {
		return api.Clusters.Detach(s.Ctx, name, c.Purge, c.Force)
	})
}

// clusterAccess shows or says what a cluster may do beyond its own machines.
type clusterAccess struct {
	Cluster  string   `arg:"" help:"An attached cluster, or the UID of any: that of its namespace kube-system."`
	TakeFrom []string `help:"It may take over machines of this cluster by their claims, as clusterctl move needs it; local are machines that people made. Repeat for more." placeholder:"CLUSTER"`
	Pool     []string `help:"It sees, uses and changes hosts of this pool only, and makes no pools of its own. Repeat for more." placeholder:"POOL"`
	NoTake   bool     `help:"It may take over no machines of others." xor:"take"`
	AllPools bool     `help:"It may use every pool again." xor:"pools"`
}

// Run shows or changes the rights of a cluster. Without a flag, a right keeps its value.
func (c *clusterAccess) Run(s *cli.Session, api *client.Client) error {
	if len(c.TakeFrom) > 0 && c.NoTake || len(c.Pool) > 0 && c.AllPools {
		return cli.Usage("use either --take-from or --no-take, and either --pool or --all-pools", "the flags contradict each other")
	}
	a, err := api.Appliance().ClusterAccess(s.Ctx, c.Cluster)
	if err != nil {
		return err
	}
	isChange := len(c.TakeFrom)+len(c.Pool) > 0 || c.NoTake || c.AllPools
	if len(c.TakeFrom) > 0 || c.NoTake {
		a.TakesFrom = c.TakeFrom
	}
	if len(c.Pool) > 0 || c.AllPools {
		a.Pools = c.Pool
	}
	if isChange {
		if a, err = api.Clusters.SetAccess(s.Ctx, c.Cluster, a); err != nil {
			return err
		}
	}
	return s.Show(a, func(t *cli.TableWriter) { showAccess(t, a) })
}

func showAccess(t *cli.TableWriter, a inventory.ClusterAccess) {
	t.Field("uid", a.UID)
	takes, pools := "nobody", "all"
	if len(a.TakesFrom) > 0 {
		takes = strings.Join(a.TakesFrom, ", ")
	}
	if len(a.Pools) > 0 {
		pools = strings.Join(a.Pools, ", ")
	}
	t.Field("takes machines from", takes)
	t.Field("pools", pools)
	t.Field("authority", strings.Join(a.Authority, ", "))
	t.Field("said", cli.TimeText(a.UpdatedAt))
}
