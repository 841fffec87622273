package configs

import (
	"errors"
	"net/http"
	"slices"

	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/rest"
)

// addProfiles registers the operations on profiles.
func (s *Server) addProfiles() {
	n := s.profiles()
	rest.AddNoun(s.rest, n)
	addRevisions(s, n, inventory.RevisionOfProfile, func(_ inventory.Tx, name string) (string, error) { return name, nil })
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/profiles/{name}/check", ID: "check-profile", Tag: "profiles", Body: configBody, Within: checkFor, Asks: true,
		Summary: "Say what a profile would do to its hosts, without saving it", Errors: []int{http.StatusNotFound},
		About: "Renders every host that it is for, before and after.",
	}, s.checkProfile)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/profiles/{name}/hosts", ID: "list-hosts-of-profile", Scope: rest.OfPools, Tag: "profiles",
		AtAny:   true,
		Summary: "List the names of the hosts that a profile is for", Errors: []int{http.StatusNotFound},
	}, s.hostsOfProfile)
}

func (s *Server) profiles() rest.Noun[inventory.Profile] {
	n := rest.Plain(noun.Profiles, s.rest.Now, func(tx inventory.Tx, in, old *inventory.Profile) error {
		in.Saved = inventory.Saved{}
		if old != nil {
			in.Saved, in.Revision = old.Saved, old.Revision
		}
		if err := takeFiles(in); err != nil {
			return err
		}
		if err := in.Validate(); err != nil {
			return err
		}
		return checkArgs(tx, in)
	})
	n.Vet, n.Body, n.Within, n.Counts = s.vetProfile, configBody, checkFor, countsOfProfile
	return n
}

// vetProfile renders the hosts of a profile as it would be, and refuses one with errors.
func (s *Server) vetProfile(req *rest.Request, p *inventory.Profile) (*configuration.Impact, error) {
	i, err := s.cfg.Renderer.CheckProfile(req, p)
	if inventory.IsKind(err, inventory.NotFound) {
		return nil, nil // an image or a parent that is not there, which the store refuses with better words
	}
	if err != nil {
		return nil, err
	}
	i = listsOf(i)
	return &i, refuse("profile "+p.Name, &i)
}

func (s *Server) checkProfile(req *rest.Request, in *checkInput[inventory.Profile]) (*rest.One[configuration.Impact], error) {
	n := s.profiles()
	p := in.Body
	err := s.rest.Store.Read(req, func(tx inventory.Tx) error {
		var old *inventory.Profile
		if stored, err := n.Find(tx, in.Name); err == nil {
			old = &stored
		}
		err := n.Prepare(tx, &p, in.Name, old)
		rest.Signed(req, &p)
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.cfg.Renderer == nil {
		return nil, errNoConfigs()
	}
	i, err := s.cfg.Renderer.CheckProfile(req, &p)
	return &rest.One[configuration.Impact]{Body: listsOf(i)}, err
}

// checkArgs refuses a profile whose arguments could not be written into a script of its image, so that the mistake shows
// when it is made and not when a machine boots. An image that does not exist is the store's to refuse.
func checkArgs(tx inventory.Tx, f *inventory.Profile) error {
	i, err := tx.Images().Find(f.Image)
	if err != nil {
		return nil
	}
	return pxe.CheckArgs(&i, f)
}

// hostsOfProfile asks, for every host, which profile it would get.
func (s *Server) hostsOfProfile(req *rest.Request, in *rest.NameInput) (*rest.One[rest.List[string]], error) {
	out := rest.List[string]{Items: []string{}}
	err := s.rest.Store.Read(req, func(tx inventory.Tx) error {
		if _, err := tx.Profiles().Find(in.Name); err != nil {
			return err
		}
		profiles, err := tx.Profiles().List(inventory.Page{})
		if err != nil {
			return err
		}
		machines, err := tx.ListMachines(inventory.MachineFilter{}, inventory.Page{})
		if err != nil {
			return err
		}
		pinned := map[string]string{} // by machine
		for i := range machines {
			pinned[machines[i].Name] = machines[i].Profile
		}
		hosts, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
		for i := range hosts {
			if name, ok := pinned[hosts[i].Machine]; ok { // a claimed host becomes what its machine says
				hosts[i].Profile = name
			}
			if p, problem := configuration.SelectProfile(&hosts[i], profiles); problem == nil && p.Name == in.Name {
				out.Items = append(out.Items, hosts[i].Name)
			}
		}
		return err
	})
	return &rest.One[rest.List[string]]{Body: out}, err
}

// countsOfProfile counts the hosts that are pinned to a profile, and the machines.
func countsOfProfile(tx inventory.Tx, p inventory.Profile) (map[string]int, error) {
	hosts, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{})
	if err != nil {
		return nil, err
	}
	hosts = slices.DeleteFunc(hosts, func(h inventory.Host) bool { return h.Profile != p.Name })
	machines, err := tx.ListMachines(inventory.MachineFilter{Profile: p.Name}, inventory.Page{})
	return map[string]int{"host": len(hosts), "machine": len(machines)}, err
}

// takeFiles makes the local files that came with the document of a profile part of its text.
func takeFiles(p *inventory.Profile) error {
	if p.Document == nil || len(p.Document.Files) == 0 {
		return nil
	}
	d := *p.Document
	if d.Format != inventory.DocButane {
		return inventory.Errorf(inventory.Invalid, "only a Butane document names local files").At("document.files").WithHint("leave the files out")
	}
	text, err := ignition.WithFiles(d.Text, d.Files)
	if said, ok := errors.AsType[*inventory.Error](err); ok {
		return inventory.Errorf(said.Kind, "document: %s", said.Msg).At("document.files").WithHint("%s", said.Hint)
	}
	d.Text, d.Files = text, nil
	p.Document = &d
	return err
}
