package power

import (
	"net/http"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/history"
	"slipway.dev/slipway/web/rest"
)

type (
	powerInput struct {
		rest.HostRef
		Body struct {
			Action bmc.Action `json:"action" doc:"off is at once, shutdown asks the operating system, reset leaves a machine off that is off" enum:"on,off,shutdown,cycle,reset"`
		}
	}
	confirmInput struct {
		rest.HostRef
		Body struct {
			State inventory.PowerState `json:"state" enum:"on,off"`
		}
	}
)

// addPower registers what is done with a host's power.
func (s *Server) addPower() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/hosts/{host}/power", ID: "power-host", Scope: rest.OfPools, Tag: "hosts", Status: http.StatusAccepted,
		Summary: "Change the power of a host", Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden},
		About: "Answers the operation, which ends when the controller has confirmed the change.",
	},
		func(req *rest.Request, in *powerInput) (*rest.One[inventory.Operation], error) {
			h, err := s.rest.ReadHost(req, in.Host)
			if err != nil {
				return nil, err
			}
			o, err := s.cfg.Engine.Power(req, h.ID, in.Body.Action, s.rest.Asker(req))
			return &rest.One[inventory.Operation]{ETag: rest.ETag(o.Version), Body: history.Told(o)}, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/hosts/{host}/power/confirm", ID: "confirm-power", Scope: rest.OfPools, Tag: "hosts",
		Summary: "Say whether a host is on, where that cannot be read", Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden},
		About: "Confirm off only if you have seen it: all later steps rely on it.",
	},
		func(req *rest.Request, in *confirmInput) (*rest.One[inventory.Host], error) {
			h, err := s.rest.ReadHost(req, in.Host)
			if err != nil {
				return nil, err
			}
			h, err = s.cfg.Engine.ConfirmPower(req, h.ID, in.Body.State, s.rest.Asker(req))
			return &rest.One[inventory.Host]{ETag: rest.ETag(h.Version), Body: h}, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/hosts/{host}/locate", ID: "locate-host", Scope: rest.OfPools, Tag: "hosts", Status: http.StatusNoContent, Within: ControllerFor,
		Summary: "Light the identify LED of a host, or switch it off", Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden},
	},
		func(req *rest.Request, in *OnInput) (*struct{}, error) {
			return nil, s.Locate(req, in.Host, in.Body.On, false)
		})
}

// Locate switches the identify LED of a host. A dry run only looks whether there is a controller that can.
func (s *Server) Locate(req *rest.Request, host string, on, isDry bool) error {
	return withBMC(req, s, host, "has no identify LED", func(_ inventory.Host, d bmc.Locator, _ inventory.BMC) error {
		if isDry {
			return nil
		}
		if err := s.rest.Begun(req); err != nil {
			return err
		}
		return d.Locate(req, on)
	})
}

// What these inputs ask for, in words.

func (in *powerInput) Asked() string   { return string(in.Body.Action) }
func (in *confirmInput) Asked() string { return "seen to be " + string(in.Body.State) }

// OnInput switches a flag of a host.
type OnInput struct {
	rest.HostRef
	Body struct {
		On bool `json:"on"`
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// Asked says on or off, for the audit.
func (in *OnInput) Asked() string { return onOff(in.Body.On) }
