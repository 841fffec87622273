package power

import (
	"errors"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/trial"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// testBMC connects to a controller as somebody is about to save it, and says at which step that fails. Nothing is stored.
func (s *Server) testBMC(req *rest.Request, in *putBMCInput) (*rest.One[wire.BMCCheck], error) {
	h, old, err := s.readBMC(req, in.Host)
	if err != nil && !inventory.IsKind(err, inventory.NotFound) || h.ID == "" {
		return nil, err
	}
	b, err := wantedBMC(old, in.Body.BMC)
	if err != nil {
		return nil, err
	}
	b.HostID = h.ID
	c := wire.BMCCheck{Host: h.Name, Power: inventory.PowerUnknown, Capabilities: []string{}, Results: []wire.TargetCheckResult{}, IsGood: true}
	err = s.cfg.Engine.TryBMC(req, b, in.Body.Password, func(t bmc.Target, open bmc.Opener) error {
		steps, power := trial.Run(req, t, open)
		if !rest.IsAdminEverywhere(req) {
			steps = trial.Discreet(steps)
		}
		c.Power = power
		for _, x := range steps {
			r := wire.TargetCheckResult{Name: x.Name, IsGood: x.Err == nil, Detail: x.Detail}
			if said, ok := errors.AsType[*inventory.Error](x.Err); ok {
				r.Detail, r.Hint = said.Msg, said.Hint
				req.Named.Add(said.Refs...)
			} else if x.Err != nil {
				r.Detail = "it took too long"
			}
			c.IsGood = c.IsGood && r.IsGood
			c.Results = append(c.Results, r)
		}
		return nil
	})
	return &rest.One[wire.BMCCheck]{Body: c}, err
}
