package records

import (
	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/claim"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// addPools registers the operations on pools.
func addPools(f *rest.Frame) {
	now := f.Now
	rest.AddNoun(f, rest.Noun[wire.Pool]{
		Singular: "pool", Plural: "pools", Needs: inventory.Admin, Scope: rest.OfPools, Article: "a",
		Name:    func(p wire.Pool) string { return p.Name },
		Version: func(p wire.Pool) int64 { return p.Version },
		Prepare: func(_ inventory.Tx, in *wire.Pool, name string, old *wire.Pool) error {
			if err := rest.SameName("pool", &in.Name, name); err != nil {
				return err
			}
			in.Hosts = wire.PoolHosts{}
			if old != nil {
				in.CreatedAt, in.UpdatedAt, in.Version, in.Hosts = old.CreatedAt, old.UpdatedAt, old.Version, old.Hosts
			}
			if err := in.Validate(); err != nil {
				return err
			}
			return checkExpression(in.Requirements)
		},
		Find: func(tx inventory.Tx, name string) (wire.Pool, error) {
			p, err := tx.Pools().Find(name)
			if err != nil {
				return wire.Pool{}, err
			}
			all, err := counted(tx, []inventory.Pool{p})
			if err != nil {
				return wire.Pool{}, err
			}
			return all[0], nil
		},
		List: func(tx inventory.Tx, p rest.Page) (*rest.Listed[wire.Pool], error) {
			rows, err := tx.Pools().List(inventory.Page{})
			if err != nil {
				return nil, err
			}
			page := rest.Cut(rows, p, func(p inventory.Pool) string { return p.Name })
			all, err := counted(tx, page.Body.Items)
			return &rest.Listed[wire.Pool]{Body: rest.List[wire.Pool]{Items: all, Next: page.Body.Next}}, err
		},
		Create: func(tx inventory.Tx, in *wire.Pool) error { return recount(tx, in, tx.Pools().Create(&in.Pool, now())) },
		Update: func(tx inventory.Tx, in *wire.Pool) error { return recount(tx, in, tx.Pools().Update(&in.Pool, now())) },
		Remove: func(tx inventory.Tx, name string) error { return tx.Pools().Delete(name) },
		Counts: countsOfPool,
	})
}

// recount counts the hosts of a pool that was just stored.
func recount(tx inventory.Tx, in *wire.Pool, err error) error {
	if err != nil {
		return err
	}
	all, err := counted(tx, []inventory.Pool{in.Pool})
	if err == nil {
		*in = all[0]
	}
	return err
}

// counted adds to pools how their hosts are doing, going through the hosts once.
func counted(tx inventory.Tx, pools []inventory.Pool) ([]wire.Pool, error) {
	counts, err := claim.PoolCounts(tx, pools)
	if err != nil {
		return nil, err
	}
	out := make([]wire.Pool, len(pools))
	for i, n := range counts {
		out[i] = wire.Pool{Pool: pools[i], Hosts: wire.PoolHosts(n)}
	}
	return out, nil
}

// checkExpression compiles what is required, so that nonsense is refused before anything waits for it.
func checkExpression(r inventory.HardwareRequirements) error {
	if r.Expression == "" {
		return nil
	}
	_, err := hardware.Compile(r.Expression)
	return err
}

func countsOfPool(tx inventory.Tx, p wire.Pool) (map[string]int, error) {
	all, err := counted(tx, []inventory.Pool{p.Pool})
	if err != nil {
		return nil, err
	}
	return map[string]int{"host": all[0].Hosts.Total}, nil
}
