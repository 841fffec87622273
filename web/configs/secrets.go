package configs

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

type putSecretInput struct {
	rest.WriteOptions
	rest.NameRef
	Body wire.SecretInput
}

// addSecrets registers the operations on secrets.
func (s *Server) addSecrets() {
	n := rest.Plain(noun.Secrets, s.rest.Now, nil)
	n.Create, n.Update = nil, nil
	remove := n.Remove
	n.Remove = func(tx inventory.Tx, name string) error {
		if err := Unused(tx, "secret", name, secretRE(name)); err != nil {
			return err
		}
		return remove(tx, name)
	}
	rest.AddNoun(s.rest, n)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/secrets/{name}/uses", ID: "get-secret-uses", Needs: inventory.Operator, Tag: "secrets",
		Summary: "Say what uses a secret", Errors: []int{http.StatusNotFound},
	}, s.secretUses)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPut, Path: "/secrets/{name}", ID: "put-secret", Needs: inventory.Admin, Tag: "secrets", Dry: true, Result: inventory.Secret{}, Body: configBody,
		Summary: "Store a secret, whether it exists or not", About: "Its value goes in and never comes out again, but to the machines that are given it.",
		Errors: []int{http.StatusConflict, http.StatusNotFound, http.StatusPreconditionFailed},
	}, func(req *rest.Request, in *putSecretInput) (*rest.Written, error) { return s.putSecret(req, n, in) })
}

func (s *Server) putSecret(req *rest.Request, n rest.Noun[inventory.Secret], in *putSecretInput) (*rest.Written, error) {
	sealed, err := s.seal(in)
	if err != nil {
		return nil, err
	}
	var (
		x   inventory.Secret
		old *inventory.Secret
	)
	err = s.rest.Write(req, in.DryRun, func(tx inventory.Tx) error {
		x, old = inventory.Secret{Name: in.Name}, nil
		switch stored, err := tx.Secrets().Find(in.Name); {
		case err == nil:
			old, x = &stored, stored
			if err := in.Check("secret", in.Name, stored.Version); err != nil {
				return err
			}
		case !inventory.IsKind(err, inventory.NotFound):
			return err
		case in.IfMatch != "":
			return &rest.StatusError{Status: http.StatusPreconditionFailed, Err: inventory.Errorf(inventory.Conflict, "secret %s does not exist", in.Name).
				WithHint("leave out If-Match to create it")}
		case sealed == nil:
			return inventory.Errorf(inventory.Invalid, "secret %s has no value yet", in.Name).WithHint("give its value")
		}
		if in.Body.About != nil {
			x.About = *in.Body.About
		}
		if in.Body.Consumers != nil {
			x.Consumers = *in.Body.Consumers
		}
		if sealed != nil {
			x.Sealed = sealed
		}
		if err := x.Validate(); err != nil {
			return err
		}
		switch {
		case old == nil:
			if err := tx.Secrets().Create(&x, s.rest.Now()); err != nil {
				return err
			}
			rest.Edited(req, "secret", x.Name, inventory.AuditCreate, nil, x, x.Version)
			req.Trail.Say("value set")
			return s.rest.Changed(req, tx, "secret/"+x.Name, "secret "+x.Name+" created")
		case sealed == nil && len(rest.Compare(*old, x)) == 0:
			return nil
		}
		if err := tx.Secrets().Update(&x, s.rest.Now()); err != nil {
			return err
		}
		rest.Edited(req, "secret", x.Name, inventory.AuditUpdate, *old, x, x.Version)
		what := rest.FieldNames(rest.Compare(*old, x))
		if sealed != nil {
			what = "value"
			req.Trail.Say("value set")
			req.Trail.Fix("the value that it had is not kept")
		}
		return s.rest.Changed(req, tx, "secret/"+x.Name, "secret "+x.Name+" changed ("+what+")")
	})
	if err != nil {
		return nil, err
	}
	w := n.Respond(old, &x, in.DryRun, http.StatusOK)
	if d, ok := w.Body.(rest.Diff); ok && sealed != nil {
		d.Changes = append(d.Changes, wire.Difference{Field: "value", To: "(secret)"})
		w.Body = d
	}
	return w, nil
}

// seal seals the value that came in; nil when none did. It is bound to the name that the secret will have.
func (s *Server) seal(in *putSecretInput) ([]byte, error) {
	if err := inventory.CheckName("secret", in.Name); err != nil {
		return nil, err
	}
	if in.Body.Value == nil {
		return nil, nil
	}
	v := *in.Body.Value
	switch {
	case v == "":
		return nil, inventory.Errorf(inventory.Invalid, "the value of secret %s is empty", in.Name).WithHint("delete the secret if it is not needed")
	case !utf8.ValidString(v) || strings.ContainsRune(v, 0):
		return nil, inventory.Errorf(inventory.Invalid, "the value of secret %s is not text", in.Name).WithHint("encode it first, as what reads it expects: base64, hex or PEM")
	case s.cfg.Secrets == nil:
		return nil, inventory.Errorf(inventory.Unavailable, "this server has no key for secrets")
	}
	return s.cfg.Secrets.Seal(in.Name, []byte(v))
}

// secretRE finds the ways to name a secret: secret://db in a field, {{ secret "db" }} in a template, secret: db in a
// bootstrap.
func secretRE(name string) *regexp.Regexp {
	return regexp.MustCompile(`(secret://|secret\s+["` + "`" + `]|secret:\s*["']?)` + regexp.QuoteMeta(name) + `([^a-z0-9-]|$)`)
}

// TargetRE finds bootstraps that name a join target.
func TargetRE(name string) *regexp.Regexp {
	return regexp.MustCompile(`target["']?:\s*["']?` + regexp.QuoteMeta(name) + `([^a-z0-9-]|$)`)
}

// secretUses answers what the server asks itself before it deletes one.
func (s *Server) secretUses(req *rest.Request, in *rest.NameInput) (*rest.One[wire.SecretUses], error) {
	out := wire.SecretUses{Name: in.Name, UsedBy: []string{}}
	err := s.rest.Store.Read(req, func(tx inventory.Tx) error {
		if _, err := tx.Secrets().Find(in.Name); err != nil {
			return err
		}
		users, err := usersOf(tx, secretRE(in.Name))
		if err != nil {
			return err
		}
		out.UsedBy = append(out.UsedBy, users...)
		targets, err := tx.JoinTargets().List(inventory.Page{})
		if err != nil {
			return err
		}
		for _, t := range targets {
			if slices.Contains([]string{t.Kubeconfig, t.Token, t.PKI, t.CertificateKey}, in.Name) {
				out.UsedBy = append(out.UsedBy, "target "+t.Name)
			}
		}
		clusters, err := tx.Clusters().List(inventory.Page{})
		for _, c := range clusters {
			if c.Kubeconfig == in.Name {
				out.UsedBy = append(out.UsedBy, "cluster "+c.Name)
			}
		}
		return err
	})
	return &rest.One[wire.SecretUses]{Body: out}, err
}

// usersOf lists the profiles, machines and layers in whose text something is found.
func usersOf(tx inventory.Tx, re *regexp.Regexp) (users []string, err error) {
	profiles, err := tx.Profiles().List(inventory.Page{})
	if err != nil {
		return nil, err
	}
	for _, p := range profiles {
		if re.MatchString(p.Config) || p.Document != nil && re.MatchString(p.Document.Text) {
			users = append(users, "profile "+p.Name)
		}
	}
	machines, err := tx.ListMachines(inventory.MachineFilter{}, inventory.Page{})
	if err != nil {
		return nil, err
	}
	for i := range machines {
		if re.MatchString(machines[i].Config) {
			users = append(users, "machine "+machines[i].Name)
		}
	}
	layers, err := tx.Layers().List(inventory.Page{})
	for _, l := range layers {
		if re.MatchString(l.Config) {
			l = shown(tx, l)
			users = append(users, "layer "+l.Key())
		}
	}
	return users, err
}

// Unused refuses to delete what the text of a profile or layer names.
func Unused(tx inventory.Tx, noun, name string, re *regexp.Regexp) error {
	users, err := usersOf(tx, re)
	if err != nil || len(users) == 0 {
		return err
	}
	user := users[0]
	return inventory.Errorf(inventory.Conflict, "%s %s is used by %s", noun, name, user).WithHint("change or delete %s first", user)
}
