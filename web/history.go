package web

import (
	"net/http"
	"strconv"

	"slipway.dev/slipway/inventory"
)

// addSessions registers the operations on boot sessions.
func (s *Server) addSessions() {
	addNoun(s.rest, noun[inventory.BootSession]{
		singular: "session", plural: "sessions", scope: ofPools, article: "a",
		name:    func(b inventory.BootSession) string { return string(b.ID) },
		version: func(inventory.BootSession) int64 { return 0 },
		find: func(tx inventory.Tx, name string) (inventory.BootSession, error) {
			return tx.FindSession(inventory.SessionID(name))
		},
	})
	register(s.rest, operation{
		method: http.MethodGet, path: "/sessions", id: "list-sessions", scope: ofPools, tag: "sessions", summary: "List boot sessions, latest first",
		errors: []int{http.StatusNotFound},
	},
		func(req *Request, in *struct {
			Page
			ByHost
		},
		) (out *listed[inventory.BootSession], err error) {
			err = s.rest.store.Read(req, func(tx inventory.Tx) error {
				id, err := in.hostID(tx)
				if err != nil {
					return err
				}
				rows, err := tx.ListSessions(id, in.more())
				out = pageOf(rows, in.Limit, func(b inventory.BootSession) string { return string(b.ID) })
				return err
			})
			return out, err
		})
}

// addIssues registers the operations on issues: rules open and close them, people read them.
func (s *Server) addIssues() {
	addNoun(s.rest, noun[inventory.Issue]{
		singular: "issue", plural: "issues", scope: ofPools, article: "an",
		name:    func(i inventory.Issue) string { return strconv.FormatInt(i.ID, 10) },
		version: func(inventory.Issue) int64 { return 0 },
		find: func(tx inventory.Tx, name string) (i inventory.Issue, err error) {
			id, err := strconv.ParseInt(name, 10, 64)
			if err != nil {
				return i, inventory.Errorf(inventory.Invalid, "%q is not the number of an issue", inventory.Clean(name, 40)).WithHint("slipway issue list shows them")
			}
			return tx.FindIssue(id)
		},
	})
	register(s.rest, operation{
		method: http.MethodGet, path: "/issues", id: "list-issues", scope: ofPools, tag: "issues", summary: "List open issues, newest first",
		errors: []int{http.StatusNotFound},
	},
		func(req *Request, in *issueQuery) (out *listed[inventory.Issue], err error) {
			err = s.rest.store.Read(req, func(tx inventory.Tx) error {
				id, err := in.hostID(tx)
				if err != nil {
					return err
				}
				rows, err := tx.ListIssues(in.All, id)
				if err != nil {
					return err
				}
				before, i := in.beforeID(), 0
				for before > 0 && i < len(rows) && rows[i].ID >= before {
					i++
				}
				rows = rows[i:]
				out = pageOf(rows[:min(len(rows), in.Limit+1)], in.Limit, func(i inventory.Issue) string { return strconv.FormatInt(i.ID, 10) })
				return nil
			})
			return out, err
		})
}

type issueQuery struct {
	ByHost
	After string `query:"after" doc:"Only what comes after this key: the next of the page before" pattern:"^[0-9]{1,18}$"`
	Limit int    `query:"limit" doc:"Most items in the answer" default:"100" minimum:"1" maximum:"1000"`
	All   bool   `query:"all" doc:"Closed ones as well"`
}

// beforeID is the id from which on the list goes downwards; 0 for its start.
func (q issueQuery) beforeID() int64 {
	id, _ := strconv.ParseInt(q.After, 10, 64) // the pattern has been checked
	return id
}
