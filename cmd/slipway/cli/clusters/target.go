package clusters

import (
	"net/netip"
	"time"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/cmd/slipway/cli/nouns"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

// TargetCommand is slipway target.
type TargetCommand struct {
	List       nouns.List[target, inventory.JoinTarget]      `cmd:"" help:"List the clusters that hosts may join."`
	Show       nouns.Show[target, inventory.JoinTarget]      `cmd:"" help:"Show a target."`
	Add        nouns.Create[targetNew, inventory.JoinTarget] `cmd:"" help:"Add a cluster that hosts may join."`
	Set        nouns.Set[targetEdit, inventory.JoinTarget]   `cmd:"" help:"Change a target; other settings stay."`
	Check      targetCheck                                   `cmd:"" help:"Look whether hosts can join a target."`
	RBAC       targetRBAC                                    `cmd:"" name:"rbac" help:"Write what the cluster's administrator applies once, for kubectl."`
	Kubeconfig targetKubeconfig                              `cmd:"" help:"Write a kubeconfig for the cluster that Slipway has made, for kubectl."`
	Tokens     targetTokens                                  `cmd:"" help:"List the bootstrap tokens that Slipway made for hosts."`
	Delete     nouns.Delete[target, inventory.JoinTarget]    `cmd:"" help:"Delete targets that no profile names."`
}

// target is how people read a target.
type target struct {
	nouns.Plain[inventory.JoinTarget]
}

// Fields implements nouns.Noun.
func (target) Fields(f *nouns.Fields, j inventory.JoinTarget) {
	f.Both("name", j.Name)
	f.Both("endpoint", j.Endpoint)
	f.Both("kubernetes", j.Kubernetes)
	f.Both("kubeconfig", j.Kubeconfig)
	f.Shown("token", j.Token)
	f.Shown("pki", j.PKI)
	f.Shown("certificate key", j.CertificateKey)
	f.Shown("for", cli.OrAdmins(j.Consumers))
	f.Shown("token for", cli.DurationText(j.TokenFor))
	if j.IsInit {
		f.Shown("cluster", madeText(j.InitializedAt))
	}
	f.Both("vip", cli.AddrText(j.VIP))
	f.Shown("vip interface", j.VIPInterface)
	f.Shown("vip image", j.VIPImage)
	f.Shown("pod CIDR", j.PodCIDR)
	f.Shown("service CIDR", j.ServiceCIDR)
	if j.CA != "" {
		f.Shown("ca", "is set; -o yaml shows it")
	}
}

// targetFlags are what can be said of a target; nil is not given, an empty text takes away what there is.
type targetFlags struct {
	target
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
}

// Apply implements nouns.Flags.
func (f targetFlags) Apply(s *cli.Session, t *inventory.JoinTarget) error {
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

// targetNew are what can be said of a new target.
type targetNew struct {
	Endpoint string `required:"" help:"The API server as nodes reach it." placeholder:"HOST:PORT"`
	targetFlags
}

// Apply implements nouns.Flags.
func (f targetNew) Apply(s *cli.Session, t *inventory.JoinTarget) error {
	t.Endpoint = f.Endpoint
	return f.targetFlags.Apply(s, t)
}

// targetEdit are what can be said of a target that exists.
type targetEdit struct {
	Endpoint *string `help:"The API server as nodes reach it." placeholder:"HOST:PORT"`
	targetFlags
}

// Apply implements nouns.Flags.
func (f targetEdit) Apply(s *cli.Session, t *inventory.JoinTarget) error {
	cli.Set(&t.Endpoint, f.Endpoint)
	return f.targetFlags.Apply(s, t)
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
	return cli.ShowChecks(s, k, k.IsGood, k.Results)
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
	headings := []string{"TOKEN", "NODE", "STATE", "CREATED", "EXPIRES"}
	return cli.Items(api.JoinTokens(s.Ctx, c.Target)).Show(s, cli.Rows(headings, func(k inventory.JoinToken) []string {
		return []string{k.ID, k.NodeName, string(k.State), cli.TimeText(k.CreatedAt), cli.TimeText(k.ExpiresAt)}
	}))
}
