package machines

import (
	"net/http"

	"slipway.dev/slipway/provision/foresight"
	"slipway.dev/slipway/web/rest"
)

// Foresight is what would happen.
type Foresight struct {
	Does string `json:"does" doc:"What would happen, as a sentence without its end"`
}

type foreseeInput struct {
	rest.NameRef
	Verb string `query:"verb" enum:"delete,force,reinstall,power-cycle,replace" default:"delete" doc:"force is a deletion by force; the last three are the steps of a remediation"`
}

// addForesight registers the questions what would happen. Deletions answer them in their dry runs, too.
func (s *Server) addForesight() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/machines/{name}/foresight", ID: "foresee-machine", Scope: rest.OfPools, Tag: "machines",
		Summary: "Say what a verb would do to a machine, its host and its disks", About: "Nothing is changed. It refuses a request in the same words as the real one.",
		Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden},
	}, func(req *rest.Request, in *foreseeInput) (*rest.One[Foresight], error) {
		does, err := s.foreseeMachine(req, in.Name, in.Verb)
		return &rest.One[Foresight]{Body: Foresight{Does: does}}, err
	})
}

func (s *Server) foreseeMachine(req *rest.Request, name, verb string) (string, error) {
	if _, err := s.readMachine(req, name); err != nil {
		return "", err // the engine asks nobody who it is
	}
	e, err := s.cfg.Engine.ForeseeMachine(req, name, verb)
	if err != nil {
		return "", err
	}
	return foresight.End(e), nil
}
