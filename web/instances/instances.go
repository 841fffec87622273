package instances

import (
	"net/http"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// addInstances registers the operations on instances. Only a start of a server makes one.
func (s *Server) addInstances() {
	rest.AddNoun(s.rest, rest.Noun[wire.Instance]{
		Singular: "instance", Plural: "instances", Article: "an", Needs: inventory.Admin,
		Name:    func(i wire.Instance) string { return i.Name },
		Version: func(wire.Instance) int64 { return 0 },
		Find:    s.find, List: s.list, Remove: s.remove,
	})
	s.addDrain("drain", "Have an instance hold no duties", true,
		"Others take its duties, and it stays without any until it is undrained. Refused if no other instance is alive to take them.")
	s.addDrain("undrain", "Let an instance hold duties again", false, "It takes those that nobody has.")
}

func (s *Server) list(tx inventory.Tx, p rest.Page) (*rest.Listed[wire.Instance], error) {
	k, err := s.keeper()
	if err != nil {
		return nil, err
	}
	r, err := k.Roster(tx)
	if err != nil {
		return nil, err
	}
	all := make([]wire.Instance, 0, len(r.Peers))
	for _, peer := range r.Peers {
		all = append(all, shown(peer))
	}
	return rest.Cut(all, p, func(i wire.Instance) string { return i.Name }), nil
}

func (s *Server) find(tx inventory.Tx, name string) (wire.Instance, error) {
	k, err := s.keeper()
	if err != nil {
		return wire.Instance{}, err
	}
	p, err := k.Peer(tx, name)
	return shown(p), err
}

func (s *Server) remove(tx inventory.Tx, name string) error {
	k, err := s.keeper()
	if err == nil {
		_, err = k.Forget(tx, name)
	}
	return err
}

// addDrain registers an operation that takes duties away from an instance, or ends that.
func (s *Server) addDrain(verb, summary string, isDrained bool, about string) {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/instances/{name}/" + verb, ID: verb + "-instance", Tag: "instances",
		Summary: summary, About: about, Needs: inventory.Admin, Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, func(req *rest.Request, in *rest.NameInput) (*rest.One[wire.Instance], error) {
		return s.drain(req, in.Name, isDrained)
	})
}

func (s *Server) drain(req *rest.Request, name string, isDrained bool) (*rest.One[wire.Instance], error) {
	k, err := s.keeper()
	if err != nil {
		return nil, err
	}
	var is wire.Instance
	err = s.rest.Write(req, false, func(tx inventory.Tx) error {
		was, err := s.find(tx, name)
		if err != nil {
			return err
		}
		before, after, err := k.Drain(tx, name, isDrained)
		if err != nil {
			return err
		}
		is = was
		is.IsDrained, is.DrainedAt = after.IsDrained, after.DrainedAt
		if before.IsDrained == after.IsDrained {
			return nil
		}
		rest.Edited(req, "instance", name, inventory.AuditUpdate, was, is, 0)
		done := " undrained"
		if isDrained {
			done = " drained"
		}
		return s.rest.Changed(req, tx, "instance/"+name, "instance "+name+done)
	})
	return &rest.One[wire.Instance]{Body: is}, err
}

// shown is an instance as the API shows it.
func shown(p duty.Peer) wire.Instance {
	is := wire.Instance{
		Name: p.Name, ID: p.ID, Addresses: append([]string{}, p.Addresses...), Version: p.Version, StartedAt: p.StartedAt, SeenAt: p.SeenAt,
		Links: append([]string{}, p.Links...), CutOff: p.CutOff, CutOffAt: p.CutOffAt,
		Life: string(p.Life), IsDrained: p.IsDrained, DrainedAt: p.DrainedAt, IsLeader: p.IsLeader, IsThis: p.IsSelf,
		Duties: make([]wire.InstanceDuty, 0, len(p.Duties)),
	}
	if !p.IsFirst {
		quiet := p.Quiet.Seconds()
		is.QuietSeconds = &quiet
	}
	for _, d := range p.Duties {
		one := wire.InstanceDuty{Name: d.Name, Epoch: d.Epoch, SinceAt: d.SinceAt, Reason: d.Reason, Former: d.Former}
		is.Duties = append(is.Duties, one)
	}
	return is
}
