package certrowlock_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	certrowlock "github.com/rowlockdb/rowlock/adapters/certmagic"

	"github.com/rowlockdb/rowlock"
	"github.com/rowlockdb/rowlock/internal/adaptertest"
	"github.com/rowlockdb/rowlock/internal/testdb"
)

var (
	_ certmagic.Storage          = (*certrowlock.Storage)(nil)
	_ certmagic.TryLocker        = (*certrowlock.Storage)(nil)
	_ certmagic.LockLeaseRenewer = (*certrowlock.Storage)(nil)
)

func open(t *testing.T, e *testdb.Env, folder string) *certrowlock.Storage {
	t.Helper()
	s, err := certrowlock.New(&certmagic.FileStorage{Path: folder}, adaptertest.Open(t, e))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// authority signs what it is asked to, and counts.
type authority struct {
	key    *ecdsa.PrivateKey
	issued atomic.Int64
}

func (*authority) IssuerKey() string { return "test" }

func (a *authority) Issue(_ context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	a.issued.Add(1)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: csr.DNSNames,
		NotBefore: time.Now(), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, csr.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}

func TestACertificateIsObtainedOnceByAllProcesses(t *testing.T) {
	t.Parallel()
	e, folder := testdb.Kinds[0].Open(t), t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key}
	var all sync.WaitGroup
	for range 3 {
		var cfg *certmagic.Config
		cache := certmagic.NewCache(certmagic.CacheOptions{
			GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return cfg, nil },
		})
		t.Cleanup(cache.Stop)
		cfg = certmagic.New(cache, certmagic.Config{Storage: open(t, e, folder), Issuers: []certmagic.Issuer{a}})
		all.Go(func() {
			if err := cfg.ObtainCertSync(t.Context(), "example.com"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := a.issued.Load(); n != 1 {
		t.Errorf("%d certificates were issued, want 1", n)
	}
}

func TestANameIsLockedByOneProcess(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	ours, theirs := open(t, e, t.TempDir()), open(t, e, t.TempDir())
	for _, name := range []string{"example.com", strings.Repeat("long.", 100), ""} {
		if ok, err := ours.TryLock(t.Context(), name); !ok || err != nil {
			t.Fatal(ok, err)
		}
		for _, s := range []*certrowlock.Storage{ours, theirs} {
			if ok, err := s.TryLock(t.Context(), name); ok || err != nil {
				t.Errorf("%.10q is locked twice (%v)", name, err)
			}
		}
		if err := ours.RenewLockLease(t.Context(), name, time.Hour); err != nil {
			t.Error(err)
		}
		if err := ours.Unlock(t.Context(), name); err != nil {
			t.Error(err)
		}
		if ok, err := theirs.TryLock(t.Context(), name); !ok || err != nil {
			t.Errorf("%.10q was unlocked, and is held (%v)", name, err)
		}
	}
}

func TestANameThatIsNotHeldIsRefused(t *testing.T) {
	t.Parallel()
	e := testdb.Kinds[0].Open(t)
	s := open(t, e, t.TempDir())
	adaptertest.WantIs(t, s.Unlock(t.Context(), "example.com"), rowlock.ErrUnlocked)
	adaptertest.WantIs(t, s.RenewLockLease(t.Context(), "example.com", time.Hour), rowlock.ErrUnlocked)
	_, err := certrowlock.New(nil, adaptertest.Open(t, e))
	adaptertest.WantIs(t, err, rowlock.ErrConfig)

	if err := s.Lock(t.Context(), "example.com"); err != nil {
		t.Fatal(err)
	}
	l, _ := s.Held("example.com")
	adaptertest.Steal(t, e, certrowlock.Key("example.com"))
	<-l.Context().Done()
	adaptertest.WantIs(t, s.RenewLockLease(t.Context(), "example.com", time.Hour), rowlock.ErrLost)
	adaptertest.WantIs(t, s.Unlock(t.Context(), "example.com"), rowlock.ErrLost)
	adaptertest.WantIs(t, s.Unlock(t.Context(), "example.com"), rowlock.ErrUnlocked)
}
