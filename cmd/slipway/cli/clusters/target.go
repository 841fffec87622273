package clusters

import (
	"net/netip"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

func targets(c *client.Client) client.Noun[inventory.JoinTarget] { return c.Targets }

// TargetCommand is slipway target.
type TargetCommand struct {
	List       targetList       `cmd:"" help:"List the clusters that hosts may join."`
	Show       targetShow       `cmd:"" help:"Show a target."`
	Add        targetAdd        `cmd:"" help:"Add a cluster that hosts may join."`
	Set        targetSet        `cmd:"" help:"Change a target; other settings stay."`
	Check      targetCheck      `cmd:"" help:"Look whether hosts can join a target."`
	RBAC       targetRBAC       `cmd:"" name:"rbac" help:"Write what the cluster's administrator applies once, for kubectl."`
	Kubeconfig targetKubeconfig `cmd:"" help:"Write a kubeconfig for the cluster that Slipway has made, for kubectl."`
	Tokens     targetTokens     `cmd:"" help:"List the bootstrap tokens that were minted for hosts."`
	Delete     targetDelete     `cmd:"" help:"Delete targets that no profile names."`
}

type targetList struct{}

// Run lists targets.
func (*targetList) Run(s *cli.Session) error {
	return cli.ShowList(s, targets, client.Query{}, 0, []string{"NAME", "ENDPOINT", "KUBERNETES", "KUBECONFIG", "VIP"}, func(t inventory.JoinTarget) []string {
		return []string{t.Name, t.Endpoint, t.Kubernetes, t.Kubeconfig, cli.AddrText(t.VIP)}
	})
}

type targetShow struct {
	Target string `arg:""`
}

// Run shows a target.
func (c *targetShow) Run(s *cli.Session) error {
	return cli.ShowOne(s, targets, c.Target, func(t *cli.TableWriter, j inventory.JoinTarget) {
		t.Field("name", j.Name)
		t.Field("endpoint", j.Endpoint)
		t.Field("kubernetes", j.Kubernetes)
		t.Field("kubeconfig", j.Kubeconfig)
		t.Field("token", j.Token)
		t.Field("pki", j.PKI)
		t.Field("certificate key", j.CertificateKey)
		t.Field("for", cli.OrAdmins(j.Consumers))
		if j.TokenFor != 0 {
			t.Field("token for", j.TokenFor.String())
		}
		if j.IsInit {
			t.Field("cluster", madeText(j.InitializedAt))
		}
		t.Field("vip", cli.AddrText(j.VIP))
		t.Field("vip interface", j.VIPInterface)
		t.Field("vip image", j.VIPImage)
		t.Field("pod CIDR", j.PodCIDR)
		t.Field("service CIDR", j.ServiceCIDR)
		if j.CA != "" {
			t.Field("ca", "is set; -o yaml shows it")
		}
	})
}

// targetFlags are what can be said of a target; nil is not given, an empty text takes away what there is.
type targetFlags struct {
	Kubernetes     *string        `help:"Version that nodes get, such as 1.35.0." placeholder:"VERSION"`
	CA             *string        `name:"ca" help:"File with the cluster's certificate authority, such as /etc/kubernetes/pki/ca.crt." placeholder:"FILE"`
	Kubeconfig     *string        `help:"Secret that holds the kubeconfig of Slipway's account: with it Slipway mints a token per host." placeholder:"SECRET"`
	Token          *string        `help:"Secret that holds a token made elsewhere, without --kubeconfig." placeholder:"SECRET"`
	PKI            *string        `name:"pki" help:"Secret that holds the cluster's certificate authorities, for control planes." placeholder:"SECRET"`
	CertificateKey *string        `help:"Secret that decrypts kubeadm-certs, for control planes without --pki." placeholder:"SECRET"`
	TokenFor       *time.Duration `help:"How long a minted token lives (default: 30m)." placeholder:"DURATION"`
	VIP            *string        `name:"vip" help:"Address of the endpoint that control planes share." placeholder:"ADDRESS"`
	VIPInterface   *string        `name:"vip-interface" help:"Network interface that carries it." placeholder:"NAME"`
	VIPImage       *string        `name:"vip-image" help:"Container image of the pod that announces it." placeholder:"IMAGE"`
	PodCIDR        *string        `name:"pod-cidr" help:"Network of pods, for a new cluster." placeholder:"CIDR"`
	ServiceCIDR    *string        `name:"service-cidr" help:"Network of services, for a new cluster." placeholder:"CIDR"`
	For            []string       `help:"Whose machines may join: pool:NAME or profile:NAME. These replace those that it has; none allows only what an admin has saved." placeholder:"CONSUMER"`
	DryRun         bool           `help:"Only show what would change."`
}

func (f *targetFlags) apply(s *cli.Session, t *inventory.JoinTarget) error {
	cli.Set(&t.Kubernetes, f.Kubernetes)
	cli.Set(&t.Kubeconfig, f.Kubeconfig)
	cli.Set(&t.Token, f.Token)
	cli.Set(&t.PKI, f.PKI)
	cli.Set(&t.CertificateKey, f.CertificateKey)
	cli.Set(&t.TokenFor, (*inventory.Duration)(f.TokenFor))
	cli.Set(&t.VIPInterface, f.VIPInterface)
	cli.Set(&t.VIPImage, f.VIPImage)
	cli.Set(&t.PodCIDR, f.PodCIDR)
	cli.Set(&t.ServiceCIDR, f.ServiceCIDR)
	if len(f.For) == 1 && f.For[0] == "none" {
		t.Consumers = inventory.Consumers{}
	} else if len(f.For) > 0 {
		var err error
		if t.Consumers, err = inventory.ParseConsumers(f.For); err != nil {
			return err
		}
	}
	if f.VIP != nil {
		t.VIP = netip.Addr{}
		if *f.VIP != "" {
			var err error
			if t.VIP, err = netip.ParseAddr(*f.VIP); err != nil {
				return cli.Usage("write it as 10.0.0.9", "--vip %q is not an address", *f.VIP)
			}
		}
	}
	if f.CA != nil {
		t.CA = ""
		if *f.CA != "" {
			text, err := s.ReadText(*f.CA)
			if err != nil {
				return err
			}
			t.CA = text
		}
	}
	return nil
}

type targetAdd struct {
	Name     string `arg:"" help:"Its name, a DNS label."`
	Endpoint string `required:"" help:"The API server as nodes reach it." placeholder:"HOST:PORT"`
	targetFlags
}

// Run adds a target.
func (c *targetAdd) Run(s *cli.Session) error {
	t := inventory.JoinTarget{Name: c.Name, Endpoint: c.Endpoint}
	if err := c.apply(s, &t); err != nil {
		return err
	}
	return cli.Write(s, targets, "POST", "", t, c.DryRun)
}

type targetSet struct {
	Target   string  `arg:""`
	Endpoint *string `help:"The API server as nodes reach it." placeholder:"HOST:PORT"`
	targetFlags
}

// Run changes a target as it is stored now.
func (c *targetSet) Run(s *cli.Session, api *client.Client) error {
	t, err := api.Targets.Get(s.Ctx, c.Target)
	if err != nil {
		return err
	}
	cli.Set(&t.Endpoint, c.Endpoint)
	if err := c.apply(s, &t); err != nil {
		return err
	}
	return cli.Write(s, targets, "PUT", c.Target, t, c.DryRun, client.IfVersion(t.Version))
}

type targetCheck struct {
	Target string `arg:""`
}

// Run looks whether hosts can join; anything that is not good is a failure.
func (c *targetCheck) Run(s *cli.Session, api *client.Client) error {
	k, err := api.CheckTarget(s.Ctx, c.Target)
	if err != nil {
		return err
	}
	err = s.Show(k, func(t *cli.TableWriter) {
		t.Row("STATUS", "CHECK", "DETAIL", "HINT")
		for _, r := range k.Results {
			status := "ok"
			if !r.IsGood {
				status = "error"
			}
			t.Row(status, r.Name, r.Detail, r.Hint)
		}
	})
	if err == nil && !k.IsGood {
		return cli.ErrSaid
	}
	return err
}

type targetRBAC struct {
	Target string `arg:""`
	Nodes  bool   `help:"With what Slipway needs to look after nodes: labels, taints, emptying and deleting them."`
}

// Run writes the manifest.
func (c *targetRBAC) Run(s *cli.Session, api *client.Client) error {
	text, err := api.TargetRBAC(s.Ctx, c.Target, c.Nodes)
	if err != nil {
		return err
	}
	return cli.WriteText(s.Out, string(text))
}

func madeText(at time.Time) string {
	if at.IsZero() {
		return "is still to be made, by its first control plane"
	}
	return "made " + at.Format(time.DateTime)
}

type targetKubeconfig struct {
	Target string        `arg:""`
	For    time.Duration `help:"How long it is good for." default:"24h" placeholder:"DURATION"`
}

// Run writes the kubeconfig.
func (c *targetKubeconfig) Run(s *cli.Session, api *client.Client) error {
	k, err := api.IssueKubeconfig(s.Ctx, c.Target, c.For)
	if err != nil {
		return err
	}
	return cli.WriteText(s.Out, k.Kubeconfig)
}

type targetTokens struct {
	Target string `arg:""`
}

// Run lists tokens by their public halves.
func (c *targetTokens) Run(s *cli.Session, api *client.Client) error {
	p, err := api.JoinTokens(s.Ctx, c.Target)
	if err != nil {
		return err
	}
	return s.Show(p.Items, func(t *cli.TableWriter) {
		t.Row("TOKEN", "NODE", "STATE", "CREATED", "EXPIRES")
		for _, k := range p.Items {
			t.Row(k.ID, k.NodeName, string(k.State), cli.TimeText(k.CreatedAt), cli.TimeText(k.ExpiresAt))
		}
	})
}

type targetDelete struct {
	Targets []string `arg:""`
	DryRun  bool     `help:"Only show what would be deleted."`
}

// Run deletes targets.
func (c *targetDelete) Run(s *cli.Session) error { return cli.Remove(s, targets, c.Targets, c.DryRun) }
