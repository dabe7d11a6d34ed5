"""What Kubernetes says of a job and its pods: asked by its own client, by requests that read alone.

Answers are taken as the server's JSON and not as the client's classes: those refuse what a newer server adds, and know no
custom resource.
"""
