package imports

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/web/rest"
)

// addArtefacts registers the operations on artefacts. They come by imports and go by pruning.
func (s *Server) addArtefacts() {
	find := func(tx inventory.Tx, name string) (a inventory.Artefact, err error) {
		d, err := inventory.ParseDigest(name)
		if err != nil {
			return a, err
		}
		return tx.FindArtefact(d)
	}
	rest.AddNoun(s.rest, rest.Noun[inventory.Artefact]{
		Singular: "artefact", Plural: "artefacts", Scope: rest.OfNobody, Article: "an",
		Name:    func(a inventory.Artefact) string { return string(a.Digest) },
		Version: func(inventory.Artefact) int64 { return 0 },
		Find:    find,
		List: func(tx inventory.Tx, p rest.Page) (*rest.Listed[inventory.Artefact], error) {
			rows, err := tx.ListArtefacts(p.More())
			return rest.PageOf(rows, p.Limit, func(a inventory.Artefact) string { return string(a.Digest) }), err
		},
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/artefacts/verify", ID: "verify-artefacts", Tag: "artefacts", IsLong: true,
		Summary: "Read every artefact again and list those that are missing or damaged", About: "It takes as long as the disk needs to read them all.",
	},
		func(req *rest.Request, _ *struct{}) (*rest.Listed[images.Fault], error) {
			faults, err := s.cfg.Artefacts.Verify(req)
			return rest.PageOf(faults, len(faults), func(f images.Fault) string { return string(f.Digest) }), err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/artefacts/prune", ID: "prune-artefacts", Needs: inventory.Admin, Tag: "artefacts", IsLong: true,
		Summary: "Remove the artefacts that no image uses",
	},
		func(req *rest.Request, in *struct {
			DryRun bool `query:"dryRun" doc:"Only say what would be removed"`
		},
		) (*rest.One[images.Pruned], error) {
			p, err := s.cfg.Artefacts.Prune(req, in.DryRun)
			if p.Removed == nil {
				p.Removed = []inventory.Digest{}
			}
			return &rest.One[images.Pruned]{Body: p}, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: UploadPath, ID: "upload-artefact", Tag: "artefacts", IsLong: true, Status: http.StatusCreated,
		Summary: "Store a file, so that an import can name it by its digest",
		About:   "The body is the file. Until an image uses it, it is removed an hour later by a prune. An import takes it with sha256:<hex> as the source of a file.",
	},
		func(req *rest.Request, in *uploadInput) (*rest.One[inventory.Artefact], error) {
			a, err := s.cfg.Artefacts.Take(req, in.file, in.Name, in.size)
			return &rest.One[inventory.Artefact]{Body: a}, err
		})
}

// UploadPath takes files of any size that an artefact may have; the chain bounds every other body.
const UploadPath = "/artefacts"

// pieceFor is how long an upload may be silent.
const pieceFor = time.Minute

// uploadInput is a file that is read while it arrives.
type uploadInput struct {
	Name string `query:"name" required:"true" doc:"What the file is called" minLength:"1" maxLength:"128"`
	file io.Reader
	size int64
}

// Resolve implements huma.Resolver.
func (in *uploadInput) Resolve(ctx huma.Context) []error {
	c := humaecho.UnwrapV4(ctx)
	in.file, in.size = &patientBody{body: c.Request().Body, control: http.NewResponseController(c.Response())}, c.Request().ContentLength
	return nil
}

// patientBody gives each piece of a file its own time to arrive.
type patientBody struct {
	body    io.Reader
	control *http.ResponseController
}

// Read implements io.Reader.
func (b *patientBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(pieceFor)) // not every connection has deadlines; real ones do
	return b.body.Read(p)
}

// addImages registers the operations on images and the catalogue. Images come by imports.
func (s *Server) addImages() {
	n := rest.Plain(noun.Images, nil, nil)
	n.Create, n.Update = nil, nil
	rest.AddNoun(s.rest, n)
	rest.Register(s.rest, rest.Operation{Method: http.MethodGet, Path: "/catalogue", ID: "list-catalogue", Scope: rest.OfNobody, Tag: "images", Summary: "List what can be imported by name"},
		func(_ *rest.Request, in *rest.Page) (*rest.Listed[images.Entry], error) {
			all := slices.Clone(s.cfg.Catalogue)
			key := func(e images.Entry) string { return e.OS + " " + slices.Max(append(slices.Clone(e.Releases), "")) }
			slices.SortStableFunc(all, func(a, b images.Entry) int { return strings.Compare(key(a), key(b)) })
			return rest.Cut(all, *in, key), nil
		})
}

type importInput struct {
	Body images.ImportRequest
}

type jobInput struct {
	ID       string `path:"id" maxLength:"64"`
	Revision int64  `query:"revision" doc:"Wait up to 20 s until the job has changed since this revision; 0 answers at once" minimum:"0"`
}

// waitFor is how long a request for a job waits for a change.
const waitFor = 20 * time.Second

// addImports registers the operations on image imports.
func (s *Server) addImports() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/imports", ID: "start-import", Tag: "imports", Summary: "Start to import an image",
		About:  "Answers at once; the import goes on by itself. Files of the server's own disk can be named over the Unix socket only.",
		Status: http.StatusAccepted, Errors: []int{http.StatusConflict, http.StatusNotFound, http.StatusForbidden},
	},
		func(req *rest.Request, in *importInput) (*rest.One[images.Job], error) {
			r := in.Body
			r.AllowLocal, r.IsAdmin = req.Caller.IsLocal, rest.IsAdminEverywhere(req)
			j, err := s.cfg.Jobs.Start(r)
			return &rest.One[images.Job]{Body: j}, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/imports", ID: "list-imports", Scope: rest.OfNobody, Tag: "imports",
		Summary: "List imports, oldest first",
		About:   "Imports are remembered until the server stops.",
	},
		func(*rest.Request, *struct{}) (*rest.Listed[images.Job], error) {
			jobs := s.cfg.Jobs.List()
			return rest.PageOf(jobs, len(jobs), func(j images.Job) string { return j.ID }), nil
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/imports/{id}", ID: "get-import", Scope: rest.OfNobody, Tag: "imports",
		Summary: "Show how far an import is",
		Errors:  []int{http.StatusNotFound},
	}, s.importJob)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodPost, Path: "/imports/{id}/retry", ID: "retry-import", Tag: "imports", Status: http.StatusAccepted,
		Summary: "Start an import that failed once more", About: "As a new import, which does not fetch arrived parts again.",
		Errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden},
	},
		func(req *rest.Request, in *struct {
			ID string `path:"id" maxLength:"64"`
		},
		) (*rest.One[images.Job], error) {
			j, err := s.cfg.Jobs.Retry(in.ID, req.Caller.IsLocal, rest.IsAdminEverywhere(req))
			return &rest.One[images.Job]{Body: j}, err
		})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodDelete, Path: "/imports/{id}", ID: "cancel-import", Tag: "imports", Summary: "Stop an import",
		About: "The arrived part stays, and the next import of the same continues from there.", Errors: []int{http.StatusNotFound},
	},
		func(_ *rest.Request, in *struct {
			ID string `path:"id" maxLength:"64"`
		},
		) (*struct{}, error) {
			return nil, s.cfg.Jobs.Cancel(in.ID)
		})
}

// importJob returns a job when it has changed, or after waitFor as it is.
func (s *Server) importJob(req *rest.Request, in *jobInput) (*rest.One[images.Job], error) {
	wait, cancel := context.WithTimeout(req, waitFor)
	defer cancel()
	go func() {
		select {
		case <-s.cfg.Life.Done():
			cancel()
		case <-wait.Done():
		}
	}()
	j, err := s.cfg.Jobs.Next(wait, in.ID, in.Revision)
	if err != nil && wait.Err() != nil && req.Err() == nil {
		j, err = s.cfg.Jobs.Next(req, in.ID, 0)
	}
	return &rest.One[images.Job]{Body: j}, err
}
