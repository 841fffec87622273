package main

import (
	"strings"

	"slipway.dev/slipway/inventory"
)

// clusterAccess shows or says what a cluster may do beyond its own machines.
type clusterAccess struct {
	Cluster  string   `arg:"" help:"An attached cluster, or the UID of any: that of its namespace kube-system."`
	TakeFrom []string `help:"It may take over machines of this cluster by their claims, as clusterctl move needs it; local are machines that people made. Repeat for more." placeholder:"CLUSTER"`
	Pool     []string `help:"It sees, uses and changes hosts of this pool only, and makes no pools of its own. Repeat for more." placeholder:"POOL"`
	NoTake   bool     `help:"It may take over no machines of others." xor:"take"`
	AllPools bool     `help:"It may use every pool again." xor:"pools"`
}

// Run shows what a cluster may do, or says it. What no flag is about stays.
func (c *clusterAccess) Run(s *session) error {
	if len(c.TakeFrom) > 0 && c.NoTake || len(c.Pool) > 0 && c.AllPools {
		return usage("use either --take-from or --no-take, and either --pool or --all-pools", "the flags contradict each other")
	}
	api, err := s.client()
	if err != nil {
		return err
	}
	a, err := api.Appliance().ClusterAccess(s.ctx, c.Cluster)
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
		if a, err = api.Clusters.SetAccess(s.ctx, c.Cluster, a); err != nil {
			return err
		}
	}
	return s.show(a, func(t *tableWriter) { showAccess(t, a) })
}

func showAccess(t *tableWriter, a inventory.ClusterAccess) {
	t.field("uid", a.UID)
	takes, pools := "nobody", "all"
	if len(a.TakesFrom) > 0 {
		takes = strings.Join(a.TakesFrom, ", ")
	}
	if len(a.Pools) > 0 {
		pools = strings.Join(a.Pools, ", ")
	}
	t.field("takes machines from", takes)
	t.field("pools", pools)
	t.field("authority", strings.Join(a.Authority, ", "))
	t.field("said", timeText(a.UpdatedAt))
}
