// Command provider is a real OpenID provider for tests: that of zitadel/oidc, with users of a file and their groups.
// It keeps all in memory.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// store is the example's, and knows groups.
type store struct {
	*storage.Storage
	groups map[string][]string // by id of a user
}

// SetUserinfoFromRequest fills ID tokens: with who it is, and all else where the client wants it there.
func (s *store) SetUserinfoFromRequest(ctx context.Context, u *oidc.UserInfo, r op.IDTokenRequest, scopes []string) error {
	err := s.Storage.SetUserinfoFromRequest(ctx, u, r, scopes)
	if slices.Contains(scopes, oidc.ScopeProfile) {
		err = s.addGroups(u, r.GetSubject(), err)
	}
	return err
}

// SetUserinfoFromToken fills what the userinfo endpoint says.
func (s *store) SetUserinfoFromToken(ctx context.Context, u *oidc.UserInfo, token, user, origin string) error {
	return s.addGroups(u, user, s.Storage.SetUserinfoFromToken(ctx, u, token, user, origin))
}

func (s *store) addGroups(u *oidc.UserInfo, user string, err error) error {
	if groups, ok := s.groups[user]; ok && err == nil {
		u.AppendClaims("groups", groups)
	}
	return err
}

// GetClientByClientID gives clients whose id ends in -full an ID token with everything in it.
func (s *store) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := s.Storage.GetClientByClientID(ctx, id)
	if err == nil && strings.HasSuffix(id, "-full") {
		return full{c}, nil
	}
	return c, err
}

type full struct{ op.Client }

func (full) IDTokenUserinfoClaimsAssertion() bool { return true }

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "address")
	redirect := flag.String("redirect", "", "addresses to which clients may send back, with commas")
	users := flag.String("users", "", "JSON file: users by id, each with Username, Password and groups")
	flag.Parse()
	if err := run(*listen, *redirect, *users); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(listen, redirect, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var known map[string]struct {
		Groups []string `json:"groups"`
	}
	if err := json.Unmarshal(text, &known); err != nil {
		return err
	}
	groups := map[string][]string{}
	for id, u := range known {
		if u.Groups != nil {
			groups[id] = u.Groups
		}
	}
	people, err := storage.StoreFromFile(file)
	if err != nil {
		return err
	}
	back := strings.Split(redirect, ",")
	storage.RegisterClients(storage.WebClient("slipway", "not a secret", back...), storage.WebClient("slipway-full", "not a secret", back...))
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	issuer := "http://" + l.Addr().String()
	h := exampleop.SetupServer(issuer, &store{storage.NewStorage(people), groups}, slog.New(slog.DiscardHandler), false)
	fmt.Println("issuer", issuer)
	return http.Serve(l, h)
}
