//! Keys of TLS, SASL, delegation tokens and access control.

use super::other_keys;

other_keys! {
    /// Known; security is not built yet.
    SECURITY, NotYet;

    "authorizer.class.name": String =
        "", Any, ReadOnly, refused "access control is not built yet, and a broker without it would let everyone in";
    "connection.failed.authentication.delay.ms": Int = "100", AtLeast(0), ReadOnly;
    "connections.max.reauth.ms": Long = "0", Any, ReadOnly;
    "delegation.token.expiry.check.interval.ms": Long = "3600000", AtLeast(1), ReadOnly;
    "delegation.token.expiry.time.ms": Long = "86400000", AtLeast(1), ReadOnly;
    "delegation.token.max.lifetime.ms": Long = "604800000", AtLeast(1), ReadOnly;
    "delegation.token.secret.key": Password = null, Any, ReadOnly;
    "principal.builder.class": Class =
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", Any, PerBroker, refused "Ottla loads no Java classes";
    "sasl.client.callback.handler.class": Class = null, Any, ReadOnly;
    "sasl.enabled.mechanisms": List = "GSSAPI", Any, PerBroker;
    "sasl.jaas.config": Password = null, Any, PerBroker;
    "sasl.kerberos.kinit.cmd": String = "/usr/bin/kinit", Any, PerBroker;
    "sasl.kerberos.min.time.before.relogin": Long = "60000", Any, PerBroker;
    "sasl.kerberos.principal.to.local.rules": List = "DEFAULT", Any, PerBroker;
    "sasl.kerberos.service.name": String = null, Any, PerBroker;
    "sasl.kerberos.ticket.renew.jitter": Double = "0.05", Any, PerBroker;
    "sasl.kerberos.ticket.renew.window.factor": Double = "0.8", Any, PerBroker;
    "sasl.login.callback.handler.class": Class = null, Any, ReadOnly;
    "sasl.login.class": Class = null, Any, ReadOnly;
    "sasl.login.connect.timeout.ms": Int = null, Any, ReadOnly;
    "sasl.login.read.timeout.ms": Int = null, Any, ReadOnly;
    "sasl.login.refresh.buffer.seconds": Short = "300", Any, PerBroker;
    "sasl.login.refresh.min.period.seconds": Short = "60", Any, PerBroker;
    "sasl.login.refresh.window.factor": Double = "0.8", Any, PerBroker;
    "sasl.login.refresh.window.jitter": Double = "0.05", Any, PerBroker;
    "sasl.login.retry.backoff.max.ms": Long = "10000", Any, ReadOnly;
    "sasl.login.retry.backoff.ms": Long = "100", Any, ReadOnly;
    "sasl.mechanism.controller.protocol": String = "GSSAPI", Any, ReadOnly;
    "sasl.mechanism.inter.broker.protocol": String = "GSSAPI", Any, PerBroker;
    "sasl.oauthbearer.allow.unverified.audience": Boolean = "false", Any, ReadOnly;
    "sasl.oauthbearer.allow.unverified.issuer": Boolean = "false", Any, ReadOnly;
    "sasl.oauthbearer.assertion.algorithm": String =
        "RS256", OneOfAnyCase(&["ES256", "RS256"]), ReadOnly;
    "sasl.oauthbearer.assertion.claim.aud": String = null, Any, ReadOnly;
    "sasl.oauthbearer.assertion.claim.exp.seconds": Int = "300", Between(0, 86400), ReadOnly;
    "sasl.oauthbearer.assertion.claim.iss": String = null, Any, ReadOnly;
    "sasl.oauthbearer.assertion.claim.jti.include": Boolean = "false", Any, ReadOnly;
    "sasl.oauthbearer.assertion.claim.nbf.seconds": Int = "60", Between(0, 3600), ReadOnly;
    "sasl.oauthbearer.assertion.claim.sub": String = null, Any, ReadOnly;
    "sasl.oauthbearer.assertion.file": String = null, Any, ReadOnly;
    "sasl.oauthbearer.assertion.private.key.file": String = null, Any, ReadOnly;
    "sasl.oauthbearer.assertion.private.key.passphrase": Password = null, Any, ReadOnly;
    "sasl.oauthbearer.assertion.template.file": String = null, Any, ReadOnly;
    "sasl.oauthbearer.client.credentials.client.id": String = null, Any, ReadOnly;
    "sasl.oauthbearer.client.credentials.client.secret": Password = null, Any, ReadOnly;
    "sasl.oauthbearer.clock.skew.seconds": Int = "30", Any, ReadOnly;
    "sasl.oauthbearer.expected.audience": List = "", Any, ReadOnly;
    "sasl.oauthbearer.expected.issuer": String = null, Any, ReadOnly;
    "sasl.oauthbearer.jwks.endpoint.refresh.ms": Long = "3600000", Any, ReadOnly;
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": Long = "10000", Any, ReadOnly;
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": Long = "100", Any, ReadOnly;
    "sasl.oauthbearer.jwks.endpoint.url": String = null, Any, ReadOnly;
    "sasl.oauthbearer.jwt.retriever.class": Class =
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever", Any, ReadOnly;
    "sasl.oauthbearer.jwt.validator.class": Class =
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator", Any, ReadOnly;
    "sasl.oauthbearer.scope": String = null, Any, ReadOnly;
    "sasl.oauthbearer.scope.claim.name": String = "scope", Any, ReadOnly;
    "sasl.oauthbearer.sub.claim.name": String = "sub", Any, ReadOnly;
    "sasl.oauthbearer.token.endpoint.url": String = null, Any, ReadOnly;
    "sasl.server.callback.handler.class": Class = null, Any, ReadOnly;
    "sasl.server.max.receive.size": Int = "524288", Any, ReadOnly;
    "ssl.allow.dn.changes": Boolean = "false", Any, ReadOnly;
    "ssl.allow.san.changes": Boolean = "false", Any, ReadOnly;
    "ssl.cipher.suites": List = "", Any, PerBroker;
    "ssl.client.auth": String = "none", OneOf(&["required", "requested", "none"]), PerBroker;
    "ssl.enabled.protocols": List = "TLSv1.2,TLSv1.3", Any, PerBroker;
    "ssl.endpoint.identification.algorithm": String = "https", Any, PerBroker;
    "ssl.engine.factory.class": Class = null, Any, PerBroker;
    "ssl.key.password": Password = null, Any, PerBroker;
    "ssl.keymanager.algorithm": String = "SunX509", Any, PerBroker;
    "ssl.keystore.certificate.chain": Password = null, Any, PerBroker;
    "ssl.keystore.key": Password = null, Any, PerBroker;
    "ssl.keystore.location": String = null, Any, PerBroker;
    "ssl.keystore.password": Password = null, Any, PerBroker;
    "ssl.keystore.type": String = "JKS", Any, PerBroker;
    "ssl.principal.mapping.rules": String = "DEFAULT", Any, ReadOnly;
    "ssl.protocol": String = "TLSv1.3", Any, PerBroker;
    "ssl.provider": String = null, Any, PerBroker;
    "ssl.secure.random.implementation": String = null, Any, PerBroker;
    "ssl.trustmanager.algorithm": String = "PKIX", Any, PerBroker;
    "ssl.truststore.certificates": Password = null, Any, PerBroker;
    "ssl.truststore.location": String = null, Any, PerBroker;
    "ssl.truststore.password": Password = null, Any, PerBroker;
    "ssl.truststore.type": String = "JKS", Any, PerBroker;
}
