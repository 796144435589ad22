/*
Copyright 2026 The rabbitmq-retry-operator Authors.
SPDX-License-Identifier: Apache-2.0
*/

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// credentials writes the API server's certificate and keys, and a kubeconfig with an
// administrator's certificate. What is there already is kept.
func (b *box) credentials(server string) error {
	if _, err := os.Stat(b.path("kubeconfig")); err == nil {
		return nil
	}
	ca, err := newCertificate(certificateAuthority(), nil)
	if err != nil {
		return err
	}
	serving, err := newCertificate(servingCertificate(), ca)
	if err != nil {
		return err
	}
	admin, err := newCertificate(adminCertificate(), ca)
	if err != nil {
		return err
	}
	accounts, err := newCertificate(certificateAuthority(), nil) // of which only the key is used
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		"ca.crt":               ca.certPEM,
		"server.crt":           serving.certPEM,
		"server.key":           serving.keyPEM,
		"service-accounts.key": accounts.keyPEM,
	} {
		if err := os.WriteFile(b.path(name), data, 0o600); err != nil {
			return fmt.Errorf("write the API server's credentials: %w", err)
		}
	}
	// Last, because its presence says that the rest is there.
	return b.writeKubeconfig(server, ca, admin)
}

func (b *box) writeKubeconfig(server string, ca, admin *certificate) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["sandbox"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca.certPEM}
	config.AuthInfos["sandbox"] = &clientcmdapi.AuthInfo{ClientCertificateData: admin.certPEM, ClientKeyData: admin.keyPEM}
	config.Contexts["sandbox"] = &clientcmdapi.Context{Cluster: "sandbox", AuthInfo: "sandbox", Namespace: "default"}
	config.CurrentContext = "sandbox"
	if err := clientcmd.WriteToFile(*config, b.path("kubeconfig")); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}

// certificate is a certificate with its key.
type certificate struct {
	cert            *x509.Certificate
	key             *ecdsa.PrivateKey
	certPEM, keyPEM []byte
}

func certificateAuthority() *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: "sandbox"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
}

func servingCertificate() *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:    []string{"localhost"},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

func adminCertificate() *x509.Certificate {
	return &x509.Certificate{
		Subject:     pkix.Name{CommonName: "sandbox-admin", Organization: []string{"system:masters"}},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// newCertificate makes a key and signs the template with issuer, or with itself.
func newCertificate(template *x509.Certificate, issuer *certificate) (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour) // clocks differ
	template.NotAfter = time.Now().AddDate(1, 0, 0)
	parent, signer := template, key
	if issuer != nil {
		parent, signer = issuer.cert, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	cert, parseErr := x509.ParseCertificate(der)
	keyDER, keyErr := x509.MarshalECPrivateKey(key)
	if err := errors.Join(parseErr, keyErr); err != nil {
		return nil, fmt.Errorf("encode a certificate: %w", err)
	}
	return &certificate{
		cert:    cert,
		key:     key,
		certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		keyPEM:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}, nil
}
