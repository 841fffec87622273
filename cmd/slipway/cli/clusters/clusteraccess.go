package clusters

import (
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/client"
)

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
