package files

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// addBackup registers the backup of the database.
func (s *Server) addBackup() {
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/backup", ID: "get-backup", Tag: "backup", Plain: "application/gzip", IsLong: true, IsLogged: true,
		Summary: "Take a backup of the database while everything goes on", Errors: []int{http.StatusConflict}, Needs: inventory.Admin,
		About: "All that was answered before the request is in it. The key of the secrets is not, and neither are the files of images: " +
			"keep a copy of secret.key apart. One is taken at a time. slipway restore puts it into a data directory.",
	}, s.getBackup)
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/backup/status", ID: "get-backup-status", Tag: "backup", Needs: inventory.Admin,
		Summary: "Show when the last backup was taken, and what the next one needs",
	},
		func(req *rest.Request, _ *struct{}) (*rest.One[wire.BackupStatus], error) {
			b, err := s.backupStatus(req)
			return &rest.One[wire.BackupStatus]{Body: b}, err
		})
}

// backupSlow is how long a client may take for one piece of a backup.
const backupSlow = time.Minute

func (s *Server) getBackup(req *rest.Request, _ *struct{}) (*huma.StreamResponse, error) {
	if s.cfg.Backups == nil {
		return nil, errNoBackups()
	}
	if !s.backing.TryLock() {
		return nil, inventory.Errorf(inventory.Conflict, "another backup is being taken").WithHint("try it again when that is done")
	}
	ctx, cancel := context.WithCancel(req)
	stop := context.AfterFunc(s.cfg.Life, cancel)
	end := func() {
		stop()
		cancel()
		s.backing.Unlock()
	}
	b, err := s.cfg.Backups.Backup(ctx)
	if err != nil {
		end()
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer end()
		defer b.Close()
		s.sendBackup(req.With(ctx), hc, b)
	}}, nil
}

// sendBackup sends a backup. What is cut short ends the connection, so that nobody takes it for whole.
func (s *Server) sendBackup(req *rest.Request, hc huma.Context, b Backup) {
	w := humaecho.UnwrapV4(hc).Response()
	hc.SetHeader("Content-Type", "application/gzip")
	hc.SetHeader("Content-Disposition", `attachment; filename="`+b.Name()+`"`)
	err := b.Write(&pacedWriter{ctx: req, w: w, control: http.NewResponseController(w)})
	if err == nil {
		req.Trail.Say(b.Name())
		return
	}
	s.rest.Log.Warn("backup cut short", "op", req.ID, "err", err)
	s.rest.Finish(req, http.StatusInternalServerError, b.Name()+" was cut short")
	panic(http.ErrAbortHandler)
}

// pacedWriter gives each piece its own time, and ends with its context.
type pacedWriter struct {
	ctx     context.Context
	w       io.Writer
	control *http.ResponseController
}

// Write implements io.Writer.
func (p *pacedWriter) Write(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	_ = p.control.SetWriteDeadline(time.Now().Add(backupSlow)) // not every connection has deadlines
	return p.w.Write(b)
}

func errNoBackups() error {
	return inventory.Errorf(inventory.Unavailable, "this server takes no backups")
}

func (s *Server) backupStatus(req *rest.Request) (out wire.BackupStatus, err error) {
	if s.cfg.Backups == nil {
		return out, errNoBackups()
	}
	if out.DatabaseBytes, out.FreeBytes, err = s.cfg.Backups.BackupSpace(req); err != nil {
		return out, err
	}
	err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
		if err := count(&out, tx); err != nil {
			return err
		}
		page := inventory.Page{Limit: 20}
		for {
			rows, err := tx.ListAudits(inventory.AuditFilter{Operation: "get-backup"}, page)
			if err != nil {
				return err
			}
			for _, a := range rows {
				if page.After = strconv.FormatInt(a.ID, 10); !a.IsRefused() {
					out.LastAt, out.LastBy = a.At, a.Actor
					return nil
				}
			}
			if len(rows) < page.Limit {
				return nil
			}
		}
	})
	return out, err
}

// count counts what a backup leaves out, or holds sealed.
func count(b *wire.BackupStatus, tx inventory.Tx) error {
	artefacts, err := tx.ListArtefacts(inventory.Page{})
	if err != nil {
		return err
	}
	b.ArtefactN = len(artefacts)
	for _, a := range artefacts {
		b.ArtefactBytes += a.SizeBytes
	}
	secrets, err := tx.Secrets().List(inventory.Page{})
	if err != nil {
		return err
	}
	controllers, err := tx.ListBMCs(inventory.Page{})
	b.SecretN = len(secrets)
	for _, c := range controllers {
		if len(c.Sealed) > 0 {
			b.SecretN++
		}
	}
	return err
}
