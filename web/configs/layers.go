package configs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// addLayers registers the operations on layers. The address calls a layer by its key, with a host's name or MAC in
// place of its id, and so do the answers.
func (s *Server) addLayers() {
	n := s.layers()
	rest.AddNoun(s.rest, n)
	addRevisions(s, n, inventory.RevisionOfLayer, func(tx inventory.Tx, name string) (string, error) {
		l, err := layerOf(tx, name)
		return l.Key(), err
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/layers/{name}/check", ID: "check-layer", Tag: "layers", Body: configBody, Within: checkFor, Asks: true,
		Summary: "Say what a layer would do to its hosts, without saving it", Errors: []int{http.StatusNotFound},
		About: "Renders every host that it is for, before and after.",
	}, s.checkLayer)
}

// layerOf reads the key of a layer and finds its host.
func layerOf(tx inventory.Tx, key string) (l inventory.Layer, err error) {
	if l.Scope, l.Name, err = inventory.ParseLayerKey(key); err != nil {
		return l, err
	}
	return stored(tx, l)
}

// stored turns the name of a host into its id.
func stored(tx inventory.Tx, l inventory.Layer) (inventory.Layer, error) {
	if l.Scope == inventory.ScopeHost {
		h, err := rest.FindHost(tx, l.Name)
		if err != nil {
			return l, err
		}
		l.Name = string(h.ID)
	}
	return l, nil
}

// shown turns the id of a host into its name.
func shown(tx inventory.Tx, l inventory.Layer) inventory.Layer {
	if l.Scope == inventory.ScopeHost {
		if h, err := tx.FindHost(inventory.HostID(l.Name)); err == nil {
			l.Name = h.Name
		}
	}
	return l
}

func (s *Server) layers() rest.Noun[inventory.Layer] {
	save := func(do func(inventory.Tx, *inventory.Layer) error) func(inventory.Tx, *inventory.Layer) error {
		return func(tx inventory.Tx, in *inventory.Layer) error {
			l, err := stored(tx, *in)
			if err != nil {
				return err
			}
			err = do(tx, &l)
			*in = shown(tx, l)
			return err
		}
	}
	return rest.Noun[inventory.Layer]{
		Singular: "layer", Plural: "layers", Scope: rest.OfPools, Article: "a",
		Vet: s.vetLayer, VetGone: s.vetLayerGone, Body: configBody, Within: checkFor,
		Name:    func(l inventory.Layer) string { return l.Key() },
		Version: func(l inventory.Layer) int64 { return l.Version },
		Prepare: prepareLayer,
		Find: func(tx inventory.Tx, name string) (inventory.Layer, error) {
			l, err := layerOf(tx, name)
			if err != nil {
				return l, err
			}
			if l, err = tx.Layers().Find(inventory.LayerKey(l.Scope, l.Name)); inventory.IsKind(err, inventory.NotFound) {
				return l, inventory.Errorf(inventory.NotFound, "there is no layer %s", inventory.Clean(name, 80)).WithHint("list them with: slipway layer list")
			}
			return shown(tx, l), err
		},
		List: func(tx inventory.Tx, p rest.Page) (*rest.Listed[inventory.Layer], error) {
			rows, err := tx.Layers().List(p.More())
			out := rest.PageOf(rows, p.Limit, func(l inventory.Layer) string { return l.Key() })
			for i := range out.Body.Items {
				out.Body.Items[i] = shown(tx, out.Body.Items[i])
			}
			return out, err
		},
		Create: save(func(tx inventory.Tx, l *inventory.Layer) error { return tx.Layers().Create(l, s.rest.Now()) }),
		Update: save(func(tx inventory.Tx, l *inventory.Layer) error { return tx.Layers().Update(l, s.rest.Now()) }),
		Remove: func(tx inventory.Tx, name string) error {
			l, err := layerOf(tx, name)
			if err != nil {
				return err
			}
			return tx.Layers().Delete(inventory.LayerKey(l.Scope, l.Name))
		},
	}
}

// prepareLayer takes over the key of the path, and checks that its host exists.
func prepareLayer(tx inventory.Tx, in *inventory.Layer, key string, old *inventory.Layer) error {
	if key != "" {
		l, err := layerOf(tx, key)
		if err != nil {
			return err
		}
		l = shown(tx, l)
		if given := in.Key(); in.Scope != "" && given != l.Key() {
			return inventory.Errorf(inventory.Invalid, "the body names layer %s and the address %s", inventory.Clean(given, 80), inventory.Clean(key, 80)).
				WithHint("leave scope and name out of the body")
		}
		in.Scope, in.Name = l.Scope, l.Name
	}
	if err := in.Validate(); err != nil {
		return err
	}
	l, err := stored(tx, *in)
	if err != nil {
		return err
	}
	*in = shown(tx, l)
	in.Saved = inventory.Saved{}
	if old != nil {
		in.Saved = old.Saved
		in.CreatedAt, in.UpdatedAt, in.Version, in.Revision = old.CreatedAt, old.UpdatedAt, old.Version, old.Revision
	}
	return nil
}

// impactOf renders the hosts of a layer as it would be.
func (s *Server) impactOf(req *rest.Request, in inventory.Layer) (configuration.Impact, error) {
	if s.cfg.Renderer == nil {
		return configuration.Impact{}, errNoConfigs()
	}
	l, err := rest.Read(req, s.rest.Store, func(tx inventory.Tx) (inventory.Layer, error) { return stored(tx, in) })
	if err != nil {
		return configuration.Impact{}, err
	}
	return s.cfg.Renderer.CheckLayer(req, &l)
}

func (s *Server) vetLayer(req *rest.Request, l *inventory.Layer) (*configuration.Impact, error) {
	i, err := s.impactOf(req, *l)
	if err != nil {
		return nil, err
	}
	i = listsOf(i)
	return &i, refuse("layer "+l.Key(), &i)
}

// vetLayerGone renders the hosts of a layer as they would be without it.
func (s *Server) vetLayerGone(req *rest.Request, l *inventory.Layer) (*configuration.Impact, error) {
	gone := *l
	gone.Config = ""
	return s.vetLayer(req, &gone)
}

type checkInput[T any] struct {
	rest.NameRef
	Body T
}

func (s *Server) checkLayer(req *rest.Request, in *checkInput[inventory.Layer]) (*rest.One[configuration.Impact], error) {
	l := in.Body
	err := s.rest.Store.Read(req, func(tx inventory.Tx) error {
		err := prepareLayer(tx, &l, in.Name, nil)
		rest.Signed(req, &l)
		return err
	})
	if err != nil {
		return nil, err
	}
	i, err := s.impactOf(req, l)
	return &rest.One[configuration.Impact]{Body: listsOf(i)}, err
}

// listsOf makes empty lists of those that are absent.
func listsOf(i configuration.Impact) configuration.Impact {
	i.Hosts, i.Findings = append([]configuration.HostImpact{}, i.Hosts...), append(machineconfig.Report{}, i.Findings...)
	return i
}

// refuse says why an edit must not be saved, with all that was found.
func refuse(what string, i *configuration.Impact) error {
	err := i.Err()
	if err == nil {
		return nil
	}
	said := inventory.Errorf(inventory.Invalid, "%s was not saved", what).WithHint("correct what the findings say and save it again")
	if i.FailedN > 0 {
		said.Msg += fmt.Sprintf(": %d of its %d hosts could not be rendered", i.FailedN, i.HostN)
	}
	if len(i.Findings) > 0 {
		said.Msg += ": " + inventory.MessageOf(err)
		said.Refs = inventory.RefsOf(err)
	}
	return &rest.FindingsError{Err: said, Findings: i.Findings}
}

type revisionInput struct {
	rest.NameRef
	Revision int `path:"revision" minimum:"1"`
}

type revisionsInput struct {
	rest.Page
	rest.NameRef
}

type rollbackInput struct {
	rest.WriteOptions
	rest.NameRef
	Body struct {
		Revision int `json:"revision" minimum:"1" doc:"The revision to go back to"`
	}
}

// addRevisions registers the operations on the revisions of a noun. key turns a name of the address into the one that
// revisions are kept under.
func addRevisions[T any](s *Server, n rest.Noun[T], kind inventory.RevisionKind, key func(inventory.Tx, string) (string, error)) {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/" + n.Plural + "/{name}/revisions", ID: "list-" + n.Singular + "-revisions", Scope: n.Scope, Tag: n.Plural,
		AtAny:   true,
		Summary: "List the revisions of " + n.Article + " " + n.Singular + ", newest first", Errors: []int{http.StatusNotFound},
		About: "They outlive the " + n.Singular + ", and their numbers go on when one of the same name is created again.",
	},
		func(req *rest.Request, in *revisionsInput) (out *rest.Listed[wire.Revision[T]], err error) {
			err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
				before := 0
				if in.After != "" {
					if before, err = strconv.Atoi(in.After); err != nil || before < 1 {
						return inventory.Errorf(inventory.Invalid, "after is the number of a revision")
					}
				}
				name, err := key(tx, in.Name)
				if err != nil {
					return err
				}
				rows, err := revisionsOf[T](tx, kind, name, before, in.Limit+1)
				if err == nil && len(rows) == 0 && before == 0 {
					err = inventory.Errorf(inventory.NotFound, "there is no %s %s", n.Singular, inventory.Clean(in.Name, 80)).
						WithHint("list them with: slipway %s list", n.Singular)
				}
				for i := range rows {
					rows[i].Body = nil
				}
				out = rest.PageOf(rows, in.Limit, func(r wire.Revision[T]) string { return strconv.Itoa(r.N) })
				return err
			})
			return out, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/" + n.Plural + "/{name}/revisions/{revision}", ID: "get-" + n.Singular + "-revision", Scope: n.Scope, Tag: n.Plural,
		AtAny:   true,
		Summary: "Show a revision of " + n.Article + " " + n.Singular, Errors: []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *revisionInput) (*rest.One[wire.Revision[T]], error) {
			r, err := findRevision[T](req, s, kind, in.Name, in.Revision, key)
			return &rest.One[wire.Revision[T]]{Body: r}, err
		})
	var zero T
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/" + n.Plural + "/{name}/rollback", ID: "rollback-" + n.Singular, Tag: n.Plural, Dry: true, Result: zero,
		Summary: "Make " + n.Article + " " + n.Singular + " what it was at a revision", Within: checkFor,
		About:  "That becomes a new revision. It brings back one that was deleted.",
		Errors: []int{http.StatusConflict, http.StatusNotFound, http.StatusPreconditionFailed},
	},
		func(req *rest.Request, in *rollbackInput) (*rest.Written, error) {
			r, err := findRevision[T](req, s, kind, in.Name, in.Body.Revision, key)
			if err != nil {
				return nil, err
			}
			put := &rest.PutInput[T]{WriteOptions: in.WriteOptions, NameRef: in.NameRef, Body: *r.Body}
			return n.PutOne(req, s.rest, put, fmt.Sprintf("rolled back to revision %d", r.N))
		})
}

func findRevision[T any](req *rest.Request, s *Server, kind inventory.RevisionKind, name string, n int, key func(inventory.Tx, string) (string, error)) (r wire.Revision[T], err error) {
	err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
		k, err := key(tx, name)
		if err != nil {
			return err
		}
		if _, err := tx.FindRevision(kind, k, n); err != nil {
			return err
		}
		rows, err := revisionsOf[T](tx, kind, k, n+1, 1)
		if err == nil {
			r = rows[0]
		}
		return err
	})
	return r, err
}

// revisionsOf reads revisions, and of each in which fields it differs from the one before.
func revisionsOf[T any](tx inventory.Tx, kind inventory.RevisionKind, name string, before, limit int) (out []wire.Revision[T], err error) {
	rows, err := tx.ListRevisions(kind, name, before, limit+1)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		var body T
		if err := json.Unmarshal(row.Body, &body); err != nil {
			return nil, fmt.Errorf("decode revision %d of %s %s: %w", row.N, kind, name, err)
		}
		if l, ok := any(&body).(*inventory.Layer); ok {
			*l = shown(tx, *l)
		}
		out = append(out, wire.Revision[T]{N: row.N, CreatedAt: row.CreatedAt, Changed: []string{}, Body: &body})
	}
	for i := range out {
		if i+1 < len(out) {
			for _, d := range rest.Compare(*out[i+1].Body, *out[i].Body) {
				out[i].Changed = append(out[i].Changed, d.Field)
			}
		}
	}
	return out[:min(len(out), limit)], nil
}
