package web

import (
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
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
	addNoun(s.rest, noun[inventory.Artefact]{
		singular: "artefact", plural: "artefacts", scope: ofNobody, article: "an",
		name:    func(a inventory.Artefact) string { return string(a.Digest) },
		version: func(inventory.Artefact) int64 { return 0 },
		find:    find,
		list: func(tx inventory.Tx, p Page) (*listed[inventory.Artefact], error) {
			rows, err := tx.ListArtefacts(p.more())
			return pageOf(rows, p.Limit, func(a inventory.Artefact) string { return string(a.Digest) }), err
		},
	})
	register(s.rest, operation{
		method: http.MethodPost, path: "/artefacts/verify", id: "verify-artefacts", tag: "artefacts", isLong: true,
		summary: "Read every artefact again and list those that are missing or damaged", about: "It takes as long as the disk needs to read them all.",
	},
		func(req *Request, _ *struct{}) (*listed[images.Fault], error) {
			faults, err := s.cfg.Artefacts.Verify(req)
			return pageOf(faults, len(faults), func(f images.Fault) string { return string(f.Digest) }), err
		})
	register(s.rest, operation{
		method: http.MethodPost, path: "/artefacts/prune", id: "prune-artefacts", needs: inventory.Admin, tag: "artefacts", isLong: true,
		summary: "Remove the artefacts that no image uses",
	},
		func(req *Request, in *struct {
			DryRun bool `query:"dryRun" doc:"Only say what would be removed"`
		},
		) (*one[images.Pruned], error) {
			p, err := s.cfg.Artefacts.Prune(req, in.DryRun)
			if p.Removed == nil {
				p.Removed = []inventory.Digest{}
			}
			return &one[images.Pruned]{Body: p}, err
		})
	register(s.rest, operation{
		method: http.MethodPost, path: uploadPath, id: "upload-artefact", tag: "artefacts", isLong: true, status: http.StatusCreated,
		summary: "Store a file, so that an import can name it by its digest",
		about:   "The body is the file. Until an image uses it, it is removed an hour later by a prune. An import takes it with sha256:<hex> as the source of a file.",
	},
		func(req *Request, in *uploadInput) (*one[inventory.Artefact], error) {
			a, err := s.cfg.Artefacts.Take(req, in.file, in.Name, in.size)
			return &one[inventory.Artefact]{Body: a}, err
		})
}

// uploadPath takes files of any size that an artefact may have; the chain bounds every other body.
const uploadPath = "/artefacts"

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
	addNoun(s.rest, noun[inventory.Image]{
		singular: "image", plural: "images", scope: ofNobody, article: "an",
		name:    func(i inventory.Image) string { return i.Name },
		version: func(i inventory.Image) int64 { return i.Version },
		find:    func(tx inventory.Tx, name string) (inventory.Image, error) { return tx.FindImage(name) },
		list: func(tx inventory.Tx, p Page) (*listed[inventory.Image], error) {
			rows, err := tx.ListImages(p.more())
			return pageOf(rows, p.Limit, func(i inventory.Image) string { return i.Name }), err
		},
		remove: func(tx inventory.Tx, name string) error { return tx.DeleteImage(name) },
	})
	register(s.rest, operation{method: http.MethodGet, path: "/catalogue", id: "list-catalogue", scope: ofNobody, tag: "images", summary: "List what can be imported by name"},
		func(_ *Request, in *Page) (*listed[images.Entry], error) {
			all := slices.Clone(s.cfg.Catalogue)
			key := func(e images.Entry) string { return e.OS + " " + slices.Max(append(slices.Clone(e.Releases), "")) }
			slices.SortStableFunc(all, func(a, b images.Entry) int { return compareText(key(a), key(b)) })
			return cut(all, *in, key), nil
		})
}

// isAdminEverywhere reports whether the caller is an admin everywhere.
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
	register(s.rest, operation{
		method: http.MethodPost, path: "/imports", id: "start-import", tag: "imports", summary: "Start to import an image",
		about:  "Answers at once; the import goes on by itself. Files of the server's own disk can be named over the Unix socket only.",
		status: http.StatusAccepted, errors: []int{http.StatusConflict, http.StatusNotFound, http.StatusForbidden},
	},
		func(req *Request, in *importInput) (*one[images.Job], error) {
			r := in.Body
			r.AllowLocal, r.IsAdmin = req.caller.isLocal, isAdminEverywhere(req)
			j, err := s.cfg.Jobs.Start(r)
			return &one[images.Job]{Body: j}, err
		})
	register(s.rest, operation{
		method: http.MethodGet, path: "/imports", id: "list-imports", scope: ofNobody, tag: "imports", summary: "List imports, oldest first",
		about: "Imports are remembered until the server stops.",
	},
		func(*Request, *struct{}) (*listed[images.Job], error) {
			jobs := s.cfg.Jobs.List()
			return pageOf(jobs, len(jobs), func(j images.Job) string { return j.ID }), nil
		})
	register(s.rest, operation{
		method: http.MethodGet, path: "/imports/{id}", id: "get-import", scope: ofNobody, tag: "imports", summary: "Show how far an import is",
		errors: []int{http.StatusNotFound},
	}, s.importJob)
	register(s.rest, operation{
		method: http.MethodPost, path: "/imports/{id}/retry", id: "retry-import", tag: "imports", status: http.StatusAccepted,
		summary: "Start an import that failed once more", about: "As a new import, which does not fetch arrived parts again.",
		errors: []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden},
	},
		func(req *Request, in *struct {
			ID string `path:"id" maxLength:"64"`
		},
		) (*one[images.Job], error) {
			j, err := s.cfg.Jobs.Retry(in.ID, req.caller.isLocal, isAdminEverywhere(req))
			return &one[images.Job]{Body: j}, err
		})
	register(s.rest, operation{
		method: http.MethodDelete, path: "/imports/{id}", id: "cancel-import", tag: "imports", summary: "Stop an import",
		about: "The arrived part stays, and the next import of the same continues from there.", errors: []int{http.StatusNotFound},
	},
		func(_ *Request, in *struct {
			ID string `path:"id" maxLength:"64"`
		},
		) (*struct{}, error) {
			return nil, s.cfg.Jobs.Cancel(in.ID)
		})
}

// importJob returns a job when it has changed, or after waitFor as it is.
func (s *Server) importJob(req *Request, in *jobInput) (*one[images.Job], error) {
	wait, cancel := context.WithTimeout(req, waitFor)
	defer cancel()
	go func() {
		select {
		case <-s.closing:
			cancel()
		case <-wait.Done():
		}
	}()
	j, err := s.cfg.Jobs.Next(wait, in.ID, in.Revision)
	if err != nil && wait.Err() != nil && req.Err() == nil {
		j, err = s.cfg.Jobs.Next(req, in.ID, 0)
	}
	return &one[images.Job]{Body: j}, err
}
