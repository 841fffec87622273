package web

import (
	"net/http"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/pxe"
)

// addProfiles registers the operations on profiles.
func (s *Server) addProfiles() {
	n := s.profiles()
	addNoun(s.rest, n)
	addRevisions(s, n, inventory.RevisionOfProfile, func(_ inventory.Tx, name string) (string, error) { return name, nil })
	register(s.rest, operation{
		method: http.MethodPost, path: "/profiles/{name}/check", id: "check-profile", tag: "profiles", body: configBody, within: checkFor, asks: true,
		summary: "Say what a profile would do to its hosts, without saving it", errors: []int{http.StatusNotFound},
		about: "Renders every host that it is for, before and after.",
	}, s.checkProfile)
	register(s.rest, operation{
		method: http.MethodGet, path: "/profiles/{name}/hosts", id: "list-hosts-of-profile", scope: ofPools, tag: "profiles",
		summary: "List the names of the hosts that a profile is for", errors: []int{http.StatusNotFound},
	}, s.hostsOfProfile)
}

func (s *Server) profiles() noun[inventory.Profile] {
	now := s.cfg.Now
	return noun[inventory.Profile]{
		vet: s.vetProfile, body: configBody, within: checkFor,
		singular: "profile", plural: "profiles", scope: ofNobody, article: "a",
		name:    func(f inventory.Profile) string { return f.Name },
		version: func(f inventory.Profile) int64 { return f.Version },
		prepare: func(tx inventory.Tx, in *inventory.Profile, name string, old *inventory.Profile) error {
			if err := sameName("profile", &in.Name, name); err != nil {
				return err
			}
			in.Saved = inventory.Saved{}
			if old != nil {
				in.Saved = old.Saved
				in.CreatedAt, in.UpdatedAt, in.Version, in.Revision = old.CreatedAt, old.UpdatedAt, old.Version, old.Revision
			}
			if err := takeFiles(in); err != nil {
				return err
			}
			if err := in.Validate(); err != nil {
				return err
			}
			return checkArgs(tx, in)
		},
		find: func(tx inventory.Tx, name string) (inventory.Profile, error) { return tx.FindProfile(name) },
		list: func(tx inventory.Tx, p Page) (*listed[inventory.Profile], error) {
			rows, err := tx.ListProfiles(p.more())
			return pageOf(rows, p.Limit, func(f inventory.Profile) string { return f.Name }), err
		},
		create: func(tx inventory.Tx, in *inventory.Profile) error { return tx.CreateProfile(in, now()) },
		update: func(tx inventory.Tx, in *inventory.Profile) error { return tx.UpdateProfile(in, now()) },
		remove: func(tx inventory.Tx, name string) error { return tx.DeleteProfile(name) },
		counts: countsOfProfile,
	}
}

// vetProfile renders the hosts of a profile as it would be, and refuses one with errors.
func (s *Server) vetProfile(req *Request, p *inventory.Profile) (*provision.Impact, error) {
	i, err := s.cfg.Configs.CheckProfile(req, p)
	if inventory.IsKind(err, inventory.NotFound) {
		return nil, nil // an image or a parent that is not there, which the store refuses with better words
	}
	if err != nil {
		return nil, err
	}
	i = listsOf(i)
	return &i, refuse("profile "+p.Name, &i)
}

type checkInput[T any] struct {
	NameRef
	Body T
}

func (s *Server) checkProfile(req *Request, in *checkInput[inventory.Profile]) (*one[provision.Impact], error) {
	n := s.profiles()
	p := in.Body
	err := s.rest.store.Read(req, func(tx inventory.Tx) error {
		var old *inventory.Profile
		if stored, err := n.find(tx, in.Name); err == nil {
			old = &stored
		}
		err := n.prepare(tx, &p, in.Name, old)
		signed(req, &p)
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.cfg.Configs == nil {
		return nil, errNoConfigs()
	}
	i, err := s.cfg.Configs.CheckProfile(req, &p)
	return &one[provision.Impact]{Body: listsOf(i)}, err
}

// checkArgs refuses a profile whose arguments could not be written into a script of its image, so that the mistake shows
// when it is made and not when a machine boots. An image that does not exist is the store's to refuse.
func checkArgs(tx inventory.Tx, f *inventory.Profile) error {
	i, err := tx.FindImage(f.Image)
	if err != nil {
		return nil
	}
	return pxe.CheckArgs(&i, f)
}

// hostsOfProfile asks, for every host, which profile it would get.
func (s *Server) hostsOfProfile(req *Request, in *nameInput) (*one[List[string]], error) {
	out := List[string]{Items: []string{}}
	err := s.rest.store.Read(req, func(tx inventory.Tx) error {
		if _, err := tx.FindProfile(in.Name); err != nil {
			return err
		}
		profiles, err := tx.ListProfiles(inventory.Page{})
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
			if p, problem := provision.SelectProfile(&hosts[i], profiles); problem == nil && p.Name == in.Name {
				out.Items = append(out.Items, hosts[i].Name)
			}
		}
		return err
	})
	return &one[List[string]]{Body: out}, err
}
