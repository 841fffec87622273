package records

import (
	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/web/rest"
)

// Pool is a pool with how its hosts are doing.
type Pool struct {
	inventory.Pool
	Hosts PoolHosts `json:"hosts" readOnly:"true"`
}

// PoolHosts counts the accepted hosts that a pool's selector matches. A host may be in several pools.
type PoolHosts struct {
	Total     int `json:"total"`
	Available int `json:"available" doc:"Could be claimed, as far as their state goes"`
	Claimed   int `json:"claimed"`
	Cleaning  int `json:"cleaning" doc:"Being released or wiped"`
	Failed    int `json:"failed"`
}

// addPools registers the operations on pools.
func (s *Server) addPools() {
	now := s.rest.Now
	rest.AddNoun(s.rest, rest.Noun[Pool]{
		Singular: "pool", Plural: "pools", Needs: inventory.Admin, Scope: rest.OfPools, Article: "a",
		Name:    func(p Pool) string { return p.Name },
		Version: func(p Pool) int64 { return p.Version },
		Prepare: func(_ inventory.Tx, in *Pool, name string, old *Pool) error {
			if err := rest.SameName("pool", &in.Name, name); err != nil {
				return err
			}
			in.Hosts = PoolHosts{}
			if old != nil {
				in.CreatedAt, in.UpdatedAt, in.Version, in.Hosts = old.CreatedAt, old.UpdatedAt, old.Version, old.Hosts
			}
			if err := in.Validate(); err != nil {
				return err
			}
			return checkExpression(in.Requirements)
		},
		Find: func(tx inventory.Tx, name string) (Pool, error) {
			p, err := tx.Pools().Find(name)
			if err != nil {
				return Pool{}, err
			}
			all, err := counted(tx, []inventory.Pool{p})
			if err != nil {
				return Pool{}, err
			}
			return all[0], nil
		},
		List: func(tx inventory.Tx, p rest.Page) (*rest.Listed[Pool], error) {
			rows, err := tx.Pools().List(inventory.Page{})
			if err != nil {
				return nil, err
			}
			page := rest.Cut(rows, p, func(p inventory.Pool) string { return p.Name })
			all, err := counted(tx, page.Body.Items)
			return &rest.Listed[Pool]{Body: rest.List[Pool]{Items: all, Next: page.Body.Next}}, err
		},
		Create: func(tx inventory.Tx, in *Pool) error { return recount(tx, in, tx.Pools().Create(&in.Pool, now())) },
		Update: func(tx inventory.Tx, in *Pool) error { return recount(tx, in, tx.Pools().Update(&in.Pool, now())) },
		Remove: func(tx inventory.Tx, name string) error { return tx.Pools().Delete(name) },
		Counts: countsOfPool,
	})
}

// recount counts the hosts of a pool that was just stored.
func recount(tx inventory.Tx, in *Pool, err error) error {
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
func counted(tx inventory.Tx, pools []inventory.Pool) ([]Pool, error) {
	counts, err := provision.PoolCounts(tx, pools)
	if err != nil {
		return nil, err
	}
	out := make([]Pool, len(pools))
	for i, n := range counts {
		out[i] = Pool{Pool: pools[i], Hosts: PoolHosts(n)}
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

func countsOfPool(tx inventory.Tx, p Pool) (map[string]int, error) {
	all, err := counted(tx, []inventory.Pool{p.Pool})
	if err != nil {
		return nil, err
	}
	return map[string]int{"host": all[0].Hosts.Total}, nil
}
