package history

import (
	"net/http"
	"strconv"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/rest"
)

// addSessions registers the operations on boot sessions.
func (s *Server) addSessions() {
	rest.AddNoun(s.rest, rest.Noun[inventory.BootSession]{
		Singular: "session", Plural: "sessions", Scope: rest.OfPools, Article: "a",
		Name:    func(b inventory.BootSession) string { return string(b.ID) },
		Version: func(inventory.BootSession) int64 { return 0 },
		Find: func(tx inventory.Tx, name string) (inventory.BootSession, error) {
			return tx.FindSession(inventory.SessionID(name))
		},
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/sessions", ID: "list-sessions", AtAny: true, Scope: rest.OfPools, Tag: "sessions",
		Summary: "List boot sessions, latest first",
		Errors:  []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *struct {
			rest.Page
			rest.ByHost
		},
		) (out *rest.Listed[inventory.BootSession], err error) {
			err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
				id, err := in.HostID(tx)
				if err != nil {
					return err
				}
				rows, err := tx.ListSessions(id, in.More())
				out = rest.PageOf(rows, in.Limit, func(b inventory.BootSession) string { return string(b.ID) })
				return err
			})
			return out, err
		})
}

// addIssues registers the operations on issues: rules open and close them, people read them.
func (s *Server) addIssues() {
	rest.AddNoun(s.rest, rest.Noun[inventory.Issue]{
		Singular: "issue", Plural: "issues", Scope: rest.OfPools, Article: "an",
		AtLeader: true, // which has issues that it could not store
		Name:     func(i inventory.Issue) string { return strconv.FormatInt(i.ID, 10) },
		Version:  func(inventory.Issue) int64 { return 0 },
		Find: func(tx inventory.Tx, name string) (i inventory.Issue, err error) {
			id, err := strconv.ParseInt(name, 10, 64)
			if err != nil {
				return i, inventory.Errorf(inventory.Invalid, "%q is not the number of an issue", inventory.Clean(name, 40)).WithHint("slipway issue list shows them")
			}
			return tx.FindIssue(id)
		},
	})
	rest.Register(s.rest, rest.Operation{
		Method: http.MethodGet, Path: "/issues", ID: "list-issues", Scope: rest.OfPools, Tag: "issues",
		Summary: "List open issues, newest first",
		Errors:  []int{http.StatusNotFound},
	},
		func(req *rest.Request, in *issueQuery) (out *rest.Listed[inventory.Issue], err error) {
			err = s.rest.Store.Read(req, func(tx inventory.Tx) error {
				id, err := in.HostID(tx)
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
				out = rest.PageOf(rows[:min(len(rows), in.Limit+1)], in.Limit, func(i inventory.Issue) string { return strconv.FormatInt(i.ID, 10) })
				return nil
			})
			return out, err
		})
}

type issueQuery struct {
	rest.ByHost
	After string `query:"after" doc:"Only what comes after this key: the next of the page before" pattern:"^[0-9]{1,18}$"`
	Limit int    `query:"limit" doc:"Most items in the answer" default:"100" minimum:"1" maximum:"1000"`
	All   bool   `query:"all" doc:"Closed ones as well"`
}

// beforeID is the id from which on the list goes downwards; 0 for its start.
func (q issueQuery) beforeID() int64 {
	id, _ := strconv.ParseInt(q.After, 10, 64) // the pattern has been checked
	return id
}
