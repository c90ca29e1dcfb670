"""A loss from elsewhere: ten lines that the suite finds through an entry point."""

from pytorch_metric_learning.losses import ContrastiveLoss


class CentredContrastiveLoss(ContrastiveLoss):
    """Contrastive loss on embeddings from which the batch's mean is taken."""

    def forward(self, embeddings, labels=None, indices_tuple=None, ref_emb=None, ref_labels=None):
        return super().forward(embeddings - embeddings.mean(0), labels, indices_tuple, ref_emb, ref_labels)
