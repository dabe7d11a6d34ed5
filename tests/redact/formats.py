"""Secrets as programs really print them, each invented: what stands in a log, and the part that must go nowhere."""

from __future__ import annotations

import base64
import json
import random
import string

_random = random.Random(41)
ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


def made(length: int, letters: str = ALNUM) -> str:
    """Looks random, with a digit at least."""
    return "".join(_random.choices(letters, k=length - 1)) + "7"


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


H32, H40, H64 = made(32, HEX), made(40, HEX), made(64, HEX)
W = made(9, string.ascii_lowercase + string.digits)  # a password that somebody made up
B64 = made(43, ALNUM + "+/") + "="
JWT = f"eyJhbGciOiJSUzI1NiJ9.{made(80)}.{made(60)}"
_BODY = [made(64, ALNUM + "+/") for _ in range(5)]
_TAIL = made(11, ALNUM) + "=="
_OPENSSH = [made(70, ALNUM + "+/") for _ in range(4)]


def _pem(kind: str, body: list[str], tail: str, head: str = "") -> str:
    return "\n".join([f"-----BEGIN {kind}-----", *([head, ""] if head else []), *body, tail, f"-----END {kind}-----"])


_RSA = _pem("RSA PRIVATE KEY", _BODY, _TAIL)
# name -> text of one or more lines, the secrets in it
SECRETS: dict[str, tuple[str, tuple[str, ...]]] = {}


def _add(name: str, text: str, *secrets: str) -> None:
    assert name not in SECRETS
    assert all(secret in text for secret in secrets) and secrets, name
    SECRETS[name] = (text, secrets)


def _tell(name: str, text: str, secret: str) -> None:
    """text: with {} for the secret."""
    _add(name, text.replace("{}", secret), secret)


def _all() -> None:
    _tell("aws access key id", "botocore: using access key {}", "AKIA" + made(16, string.ascii_uppercase + "234567"))
    _tell("aws temporary key id", '"AccessKeyId": "{}",', "ASIA" + made(16, string.ascii_uppercase + "234567"))
    _tell("aws secret, file", "aws_secret_access_key = {}", made(40, ALNUM + "+/"))
    _tell("aws secret, environment", "+ export AWS_SECRET_ACCESS_KEY={}", made(40, ALNUM + "+/"))
    _tell("aws secret, json", '{"SecretAccessKey": "{}", "Expiration": "2026-01-01"}', made(40, ALNUM + "+/"))
    _tell("aws secret, configure", "$ aws configure set aws_secret_access_key {}", made(40, ALNUM + "+/"))
    _tell("aws session token", "AWS_SESSION_TOKEN={}", "IQoJb3JpZ2luX2VjE" + made(180, ALNUM + "+/"))
    _tell("aws session token, alone", "sts says {} until noon", "IQoJb3JpZ2luX2VjE" + made(180, ALNUM + "+/"))
    _tell("botocore credentials", "Credentials(access_key='x', secret_key='{}', token=None)", made(40, ALNUM + "+/"))
    _tell("hadoop", "spark.hadoop.fs.s3a.secret.key={}", made(40, ALNUM + "+/"))
    _tell("core-site.xml", "<property><name>fs.s3a.secret.key</name><value>{}</value></property>", made(40))
    _tell("presigned s3", "GET https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature={} 403", made(64, HEX))
    _tell("presigned s3, security token", "https://b.s3.amazonaws.com/k?X-Amz-Security-Token={}&x=1", made(90))
    _tell(
        "presigned s3, escaped",
        r'"url": "https://b.s3.amazonaws.com/k?a=1\u0026X-Amz-Signature={}\u0026b=2"',
        made(64, HEX),
    )
    _tell("presigned gcs", "https://storage.googleapis.com/b/o?X-Goog-Credential=a&X-Goog-Signature={}", made(128, HEX))
    _tell(
        "presigned cloudfront",
        "https://cdn.example.org/f?Expires=17&Signature={}&Key-Pair-Id=K1",
        made(90, ALNUM + "~_-"),
    )
    _tell(
        "presigned oss", "https://b.oss-cn-x.aliyuncs.com/o?OSSAccessKeyId=LT&Expires=1&Signature={}", made(28) + "%3D"
    )
    account = json.dumps({"type": "service_account", "private_key": _RSA + "\n", "client_email": "a@b.iam"})
    _add("gcp service account", f"loading {account}", _BODY[0], _BODY[4], _TAIL)
    _tell("gcp api key", "https://maps.googleapis.com/x?q=1 key {}", "AIza" + made(35, ALNUM + "-_"))
    _tell("gcp access token", "token expired: {}", "ya29." + made(90, ALNUM + "-_"))
    _tell("gcp refresh token", "'refresh_token': '{}'", "1//0" + made(60, ALNUM + "-_"))
    _tell("google client secret", "client {} rejected", "GOCSPX-" + made(28, ALNUM + "-_"))
    _tell(
        "azure storage",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=x",
        made(86, ALNUM + "+/") + "==",
    )
    _tell("azure sas", "https://a.blob.core.windows.net/c/b?sv=2022-11-02&se=2026&sig={}&sp=r", made(40) + "%3D")
    _tell(
        "azure service bus", "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={}", B64
    )
    _tell("azure sql", "Server=tcp:x,1433;User ID=sa;Password={};Encrypt=True", W + "!x")
    _tell("odbc", "Driver={ODBC};UID=sa;PWD={};", W)
    _tell("azure client secret", "credential {} of the app", made(3) + "8Q~" + made(34, ALNUM + "~._-"))
    _tell("azure client secret, environment", "AZURE_CLIENT_SECRET={}", made(3) + "8Q~" + made(34))
    _tell("azure subscription key", "Ocp-Apim-Subscription-Key: {}", H32)
    for prefix in ("ghp", "gho", "ghu", "ghs", "ghr"):
        _tell(f"github {prefix}", "fatal: Authentication failed for {}", f"{prefix}_{made(36)}")
    _tell("github fine-grained", "remote: {} lacks the scope", f"github_pat_{made(22)}_{made(59)}")
    _tell("github in an address", "Cloning https://x-access-token:{}@github.com/a/b", f"ghs_{made(36)}")
    for prefix in ("glpat", "gldt", "glrt", "glptt", "glsoat", "glagent"):
        _tell(f"gitlab {prefix}", "git: {} was revoked", f"{prefix}-{made(20, ALNUM + '_')}")
    _tell("gitlab header", 'curl --header "PRIVATE-TOKEN: {}" https://git.example.org', made(20))
    _tell("gitlab ci", "https://gitlab-ci-token:{}@git.example.org/a", made(20))
    _tell("hugging face", "401 for token {}.", "hf_" + made(34))
    _tell("hugging face organisation", "401 for token {}.", "api_org_" + made(34))
    _tell("hugging face environment", "HUGGING_FACE_HUB_TOKEN={}", made(37))
    _tell("openai", "Incorrect API key provided: {}.", "sk-proj-" + made(60, ALNUM + "-_"))
    _tell("openai, old", "key={}", "sk-" + made(48))
    _tell("anthropic", "x-api-key {} invalid", "sk-ant-api03-" + made(90, ALNUM + "-_"))
    _tell("xai", "key {} is unknown", "xai-" + made(80))
    _tell("groq", "key {} is unknown", "gsk_" + made(52))
    _tell("perplexity", "key {} is unknown", "pplx-" + made(48))
    _tell("replicate", "key {} is unknown", "r8_" + made(37))
    _tell("langsmith", "key {} is unknown", f"lsv2_pt_{made(32, HEX)}_{made(10, HEX)}")
    _tell("nvidia", "nim: {} is not entitled", "nvapi-" + made(64, ALNUM + "-_"))
    _tell("ngc, old", "NGC_CLI_API_KEY={}", _encoded(f"{made(26)}:{made(36, HEX)}"))
    _tell("ngc config", "apikey = {}", _encoded(f"{made(26)}:{made(36, HEX)}"))
    _tell("ngc login", "docker login nvcr.io -u '$oauthtoken' -p '{}'", made(84))
    _tell("wandb environment", "WANDB_API_KEY={}", H40)
    _tell("wandb login", "$ wandb login --relogin {}", made(40, HEX))
    _tell("wandb namespace", "Namespace(lr=0.1, wandb_key='{}', wandb_project='p')", made(40, HEX))
    _tell("comet", "comet_ml.init(api_key='{}')", made(25))
    _tell("neptune", "NEPTUNE_API_TOKEN={}", "eyJhcGlf" + made(120))
    _tell("kaggle", '{"username":"bob","key":"{}"}', made(32, HEX))
    _tell("kaggle, python", "{'username': 'bob', 'key': '{}'}", made(32, HEX))
    _tell("docker config", '"auths": {"nvcr.io": {"auth": "{}"}}', _encoded(f"bob:{W}"))
    _tell("docker identity", '"identitytoken": "{}"', made(60))
    _tell("docker hub", "unauthorized: {}", "dckr_pat_" + made(27, ALNUM + "-_"))
    _tell("npm", "npm ERR! {}", "npm_" + made(36))
    _tell("npmrc", "//registry.example.org/:_authToken={}", "4e1d2b7a-9f30-4c51-8e6b-1a2b3c4d5e6f")
    _tell("npmrc, basic", "_auth={}", _encoded(f"bob:{W}"))
    _tell("pypi", "TWINE: {} rejected", "pypi-AgEIcHlwaS5vcmc" + made(120, ALNUM + "-_"))
    _tell("pip index", "Looking in indexes: https://bob:{}@pypi.example.org/simple", W)
    _tell("slack bot", "slack_sdk: invalid_auth {}", f"xoxb-{made(12, '123')}-{made(12, '456')}-{made(24)}")
    _tell("slack app", "slack_sdk: invalid_auth {}", f"xapp-1-A{made(10)}-{made(12, '123')}-{made(64, HEX)}")
    _tell("slack webhook", "POST https://hooks.slack.com/services/{} 404", f"T{made(8)}/B{made(8)}/{made(24)}")
    _tell("discord webhook", "https://discord.com/api/webhooks/123456789012345678/{}", made(68, ALNUM + "-_"))
    _tell("teams webhook", "https://x.webhook.office.com/webhookb2/{}", f"a-1@b-2/IncomingWebhook/{H32}/c-3")
    _tell("feishu webhook", "https://open.feishu.cn/open-apis/bot/v2/hook/{}", "1b2c3d4e-5f60-7182-93a4-b5c6d7e8f901")
    _tell("dingtalk webhook", "https://oapi.dingtalk.com/robot/send?access_token={}", made(64, HEX))
    _tell("telegram", "https://api.telegram.org/bot{}/sendMessage", f"{made(10, '123')}:AA{made(33, ALNUM + '_-')}")
    _tell("vault", "permission denied for {}", "hvs." + made(90, ALNUM + "-_"))
    _tell("vault header", "X-Vault-Token: {}", "s." + made(24))
    _tell("databricks", "403 for {}", "dapi" + made(32, HEX))
    _tell("terraform", "401 {}", f"{made(14)}.atlasv1.{made(64)}")
    _tell("stripe", "No such customer, key {}", "sk_" + "live_" + made(40))
    _tell("stripe webhook", "signature of {} differs", "whsec_" + made(32))
    _tell("twilio", "twilio {} revoked", "SK" + made(32, HEX))
    _tell("twilio token", "TWILIO_AUTH_TOKEN={}", made(32, HEX))
    _tell("sendgrid", "mail: {} is not valid", f"SG.{made(22, ALNUM + '-_')}.{made(43, ALNUM + '-_')}")
    _tell("grafana", "loki: {} denied", "glsa_" + made(32) + "_a1b2c3d4")
    _tell("datadog", "DD_API_KEY={}", made(32, HEX))
    _tell("sentry", "dsn https://{}@o1.ingest.sentry.io/2", made(32, HEX))
    _tell("jwt", "rejected {}", JWT)
    _tell("slurm jwt", "SLURM_JWT={}", JWT)
    _tell("munge credential", "Decode failed MUNGE:{}:", made(160, ALNUM + "+/"))
    _tell("munge key", "munge.key: {}", made(88, ALNUM + "+/"))
    _tell("slurmdbd.conf", "StoragePass={}", W)
    _tell("bearer", "> Authorization: Bearer {}", made(40, ALNUM + "._-"))
    _tell("bearer alone", "sending Bearer {} to the gateway", made(32))
    _tell("basic", "Authorization: Basic {}", _encoded(f"bob:{W}"))
    _tell("proxy basic", "Proxy-Authorization: Basic {}", _encoded(f"bob:{W}"))
    _tell("header, python", "headers={'Authorization': b'Bearer {}', 'Accept': '*/*'}", made(40))
    _tell("digest", 'Authorization: Digest username="bob", realm="x", response="{}"', made(32, HEX))
    _tell("api key header", "-H 'X-Api-Key: {}'", made(32))
    _tell("cookie", "Cookie: sessionid={}; theme=dark", made(32))
    _tell("set-cookie", "< Set-Cookie: _xsrf={}; Path=/", made(40, HEX))
    _tell("cookies, python", "requests.get(u, cookies={'session': '{}'})", made(32))
    _tell("jupyter", "http://localhost:8888/lab?token={}", made(48, HEX))
    _tell("postgres", "could not connect: postgresql://bob:{}@db.example.org:5432/x", W)
    _tell("redis", "redis://:{}@10.0.0.1:6379/0", W)
    _tell("mongodb", "mongodb+srv://bob:{}@c0.example.mongodb.net/?retryWrites=true", W)
    _tell("address, slash in the password", "amqp://bob:{}@mq/vhost", "pa/ss" + W)
    _tell("jdbc", "jdbc:mysql://db:3306/x?user=bob&password={}", W)
    _tell("mysql", "+ mysql -h db -u root -p{} -e 'select 1'", W)
    _tell("mysqldump", "mysqldump --user=root --password={} x", W)
    _tell("redis-cli", "redis-cli -h r -a {} ping", W)
    _tell("mongo", "mongosh --host h -u bob -p {} admin", W)
    _tell("ipmitool", "ipmitool -I lanplus -H bmc1 -U admin -P {} chassis status", W)
    _tell("ldap", "ldapsearch -x -D cn=a -w {} -b dc=x", W)
    _tell("smb", "smbclient //h/s -U bob%{}", W)
    _tell("sudo", "echo {} | sudo -S nvidia-smi -r", W)
    _tell("docker password", "echo {} | docker login -u bob --password-stdin", W)
    _tell("openssl", "openssl rsa -in k -passin pass:{}", W)
    _tell("sshpass", "sshpass -p {} ssh gpu-01", W)
    _tell("sshpass, together", "sshpass -p'{}' ssh gpu-01", W)
    _tell("curl", "curl -sS -u bob:{} https://x.example.org", W)
    _tell("curl, quoted", "curl --user 'bob:{}' https://x.example.org", W)
    _tell("flag", "python train.py --hf-token {} --lr 1", made(20))
    _tell("pwd", "connecting with uid=bob pwd={}", W)
    _tell("pass in the environment", "DB_PASS={}", W)
    _tell("passcode", "passcode: {}", W)
    _tell("prompt", "Password for bob: {}", W)
    _tell("password in words", "logged in with password {} as user bob", "correcthorse")
    _tell("password is", "the password is {} for now", W)
    _tell("key in words", "decrypting using key {}", made(64, HEX))
    _tell("sql", "CREATE USER bob IDENTIFIED BY '{}'", W)
    _tell("sql password", "ALTER ROLE bob WITH PASSWORD '{}'", W)
    _tell("environment", "export MY_SERVICE_SECRET={}", W)
    _tell("environment, declared", 'declare -x REGISTRY_PASSWORD="{}"', W)
    _tell("environment, python", "environ({'HOME': '/root', 'S3_SECRET_KEY': '{}'})", made(40))
    _tell("environment, suffix", "SECRET_VALUE={}", made(24))
    _tell("kubernetes environment", '{"name": "HF_TOKEN", "value": "{}"}', made(20))
    _tell("namespace", "Namespace(password='{}', lr=0.1)", W)
    _tell("bytes", "connect(user=b'bob', password=b'{}')", W)
    _tell("yaml", "  db_password: {}  # change me", W)
    _tell("json", '{"db": {"user": "bob", "passwd": "{}"}}', W)
    _tell("json in json", r'"{\"secret\": \"{}\"}"', W)
    _tell("tuple", "('client_secret', '{}')", W)
    _tell("xml", "<password>{}</password>", W)
    _tell("kubeconfig key", "    client-key-data: {}", _encoded(_RSA))
    _tell("kubeconfig token", "    token: {}", f"{made(6)}.{made(16)}")
    _tell("kubernetes join", "kubeadm join 10.0.0.1:6443 --token {}", f"{made(6)}.{made(16)}")
    _tell("netrc", "machine api.wandb.ai login user password {}", made(40, HEX))
    _add("netrc, lines", f"machine h\n  login bob\n  password {W}", W)
    _tell("age", "identity {}", "AGE-SECRET-KEY-1" + made(58, string.ascii_uppercase + "0123456789"))
    _add("rsa key", _RSA, *_BODY, _TAIL)
    _add("rsa key, rank labels", "\n".join(f"[rank3]: {line}" for line in _RSA.split("\n")), *_BODY, _TAIL)
    _add("rsa key, one line", "key " + _RSA.replace("\n", "\\n"), *_BODY, _TAIL)
    _add("openssh key", _pem("OPENSSH PRIVATE KEY", _OPENSSH, _TAIL), *_OPENSSH, _TAIL)
    _add("pgp key", _pem("PGP PRIVATE KEY BLOCK", _BODY, _TAIL, "Version: GnuPG v2"), *_BODY, _TAIL)


_all()
