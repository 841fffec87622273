package web

import (
	"net/http"
	"net/url"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

type (
	powerInput struct {
		HostRef
		Body struct {
			Action bmc.Action `json:"action" doc:"off is at once, shutdown asks the operating system, reset leaves a machine off that is off" enum:"on,off,shutdown,cycle,reset"`
		}
	}
	confirmInput struct {
		HostRef
		Body struct {
			State inventory.PowerState `json:"state" enum:"on,off"`
		}
	}
)

// addPower registers what is done with a host's power.
func (s *Server) addPower() {
	register(s.rest, operation{
		method: http.MethodPost, path: "/hosts/{host}/power", id: "power-host", scope: ofPools, tag: "hosts", status: http.StatusAccepted,
		summary: "Change the power of a host", errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden},
		about: "Answers the operation, which ends when the controller has confirmed the change.",
	},
		func(req *Request, in *powerInput) (*one[inventory.Operation], error) {
			h, err := s.readHost(req, in.Host)
			if err != nil {
				return nil, err
			}
			o, err := s.cfg.Lifecycle.Power(req, h.ID, in.Body.Action, s.rest.asker(req))
			return &one[inventory.Operation]{ETag: etag(o.Version), Body: told(o)}, err
		})
	register(s.rest, operation{
		method: http.MethodPost, path: "/hosts/{host}/power/confirm", id: "confirm-power", scope: ofPools, tag: "hosts",
		summary: "Say whether a host is on, where that cannot be read", errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden},
		about: "Confirm off only if you have seen it: all later steps rely on it.",
	},
		func(req *Request, in *confirmInput) (*one[inventory.Host], error) {
			h, err := s.readHost(req, in.Host)
			if err != nil {
				return nil, err
			}
			h, err = s.cfg.Lifecycle.ConfirmPower(req, h.ID, in.Body.State, s.rest.asker(req))
			return &one[inventory.Host]{ETag: etag(h.Version), Body: h}, err
		})
	register(s.rest, operation{
		method: http.MethodPost, path: "/hosts/{host}/locate", id: "locate-host", scope: ofPools, tag: "hosts", status: http.StatusNoContent, within: controllerFor,
		summary: "Light the identify LED of a host, or switch it off", errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden},
	},
		func(req *Request, in *onInput) (*struct{}, error) {
			return nil, s.locate(req, in.Host, in.Body.On, false)
		})
}

// locate switches the identify LED of a host. A dry run only looks whether there is a controller that can.
func (s *Server) locate(req *Request, host string, on, isDry bool) error {
	return withBMC(req, s, host, "has no identify LED", func(_ inventory.Host, d bmc.Locator, _ inventory.BMC) error {
		if isDry {
			return nil
		}
		if err := s.rest.begun(req); err != nil {
			return err
		}
		return d.Locate(req, on)
	})
}

// checkURL refuses what is neither empty nor the address of a file on a web server.
func checkURL(what, text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return inventory.Errorf(inventory.Invalid, "%s is not an http(s) address", what).WithHint("write it as http://10.0.0.1/image.iso, without user and password")
	}
	return nil
}
