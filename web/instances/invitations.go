package instances

import (
	"net/http"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// addInvitations registers the operations on invitations.
func (s *Server) addInvitations() {
	const path, tag = "/invitations", "instances"
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: path, ID: "create-invitation", Tag: tag, Summary: "Invite a machine to become an instance",
		Needs: inventory.Admin,
		About: "The answer has the command for the new machine, with a code that is shown only once. The code is good for one machine, " +
			"for 15 minutes or the time in the request. " +
			"Anybody with this code gets secret.key and the password of the database.",
		Status: http.StatusCreated, Errors: []int{http.StatusConflict},
	}, s.invite)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: path, ID: "list-invitations", Tag: tag, Summary: "List invitations, the newest first",
		Needs: inventory.Admin,
		About: "Those of the last day.",
	}, func(*rest.Request, *struct{}) (*rest.Listed[wire.Invitation], error) {
		out := &rest.Listed[wire.Invitation]{Body: rest.List[wire.Invitation]{Items: []wire.Invitation{}}}
		if s.cfg.Invitations != nil {
			out.Body.Items = s.cfg.Invitations.Invitations()
		}
		return out, nil
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodDelete, Path: path + "/{name}", ID: "withdraw-invitation", Tag: tag, Summary: "Withdraw an invitation",
		Needs:  inventory.Admin,
		About:  "From then on, nobody can use its code. A machine that has used it before keeps secret.key and the password.",
		Status: http.StatusNoContent, Errors: []int{http.StatusNotFound, http.StatusConflict},
	}, s.withdraw)
}

type invitationInput struct {
	Body struct {
		Name string             `json:"name,omitempty" doc:"What the new instance is called; absent: its machine chooses" maxLength:"63"`
		For  inventory.Duration `json:"for,omitempty" doc:"How long the code is good, 1m to 1h; 15m when it is left out"`
	}
}

func (s *Server) inviter() (Inviter, error) {
	if s.cfg.Invitations == nil {
		return nil, inventory.Errorf(inventory.Unavailable, "this server invites no machines")
	}
	return s.cfg.Invitations, nil
}

func (s *Server) invite(req *rest.Request, in *invitationInput) (*rest.One[wire.NewInvitation], error) {
	to, err := s.inviter()
	if err != nil {
		return nil, err
	}
	made, err := to.Invite(req, in.Body.Name, req.By(), time.Duration(in.Body.For))
	if err != nil {
		return nil, err
	}
	err = s.rest.Write(req, false, func(tx inventory.Tx) error {
		rest.Edited(req, "invitation", made.ID, inventory.AuditCreate, nil, made.Invitation, 0)
		req.Trail.Fix("slipway instance withdraw " + made.ID)
		return s.rest.Changed(req, tx, "instance/"+made.Name, "invitation "+made.ID+" made")
	})
	if err != nil { // nobody may use what the audit does not have
		_, _ = to.Withdraw(req, made.ID)
		return nil, err
	}
	return &rest.One[wire.NewInvitation]{Body: made}, nil
}

func (s *Server) withdraw(req *rest.Request, in *rest.NameInput) (*struct{}, error) {
	to, err := s.inviter()
	if err != nil {
		return nil, err
	}
	// It ends before the audit has it: if that fails, an admin asks again.
	ended, err := to.Withdraw(req, in.Name)
	if err != nil {
		return nil, err
	}
	return nil, s.rest.Write(req, false, func(tx inventory.Tx) error {
		rest.Edited(req, "invitation", ended.ID, inventory.AuditDelete, ended, nil, 0)
		return s.rest.Changed(req, tx, "instance/"+ended.Name, "invitation "+ended.ID+" withdrawn")
	})
}
